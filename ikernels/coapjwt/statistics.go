package coapjwt

import (
	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/counters"
)

// verdicts are in the order of `lambdanic ik stats`. The table in README.md lists them, too.
var verdicts = []counters.Counter[GuardCjVerdict]{
	{Verdict: GuardCjVerdictCJ_PASSED, Name: "passed", Help: "Requests that went to the server, as one of the keys has signed their token."},
	{Verdict: GuardCjVerdictCJ_OTHER, Name: "other", Help: "Messages that went to the server, as they are no requests: responses, acknowledgements, resets and pings."},
	{Verdict: GuardCjVerdictCJ_FORGED, Name: "dropped_signature", Help: "Requests that were dropped, as none of the keys has signed their token."},
	{Verdict: GuardCjVerdictCJ_ALGORITHM, Name: "dropped_algorithm", Help: "Requests that were dropped, as their token is not for HS256."},
	{Verdict: GuardCjVerdictCJ_TOKEN_FORM, Name: "dropped_token", Help: "Requests that were dropped, as their token is not three parts in base64url, or its header is malformed."},
	{Verdict: GuardCjVerdictCJ_NO_TOKEN, Name: "dropped_no_token", Help: "Requests that were dropped, as they have no payload, or no token in it."},
	{Verdict: GuardCjVerdictCJ_PAYLOAD, Name: "dropped_payload", Help: "Requests that were dropped, as their payload is not one map in CBOR, or has two tokens."},
	{Verdict: GuardCjVerdictCJ_BLOCKWISE, Name: "dropped_blockwise", Help: "Requests that were dropped, as they are a part of a larger one."},
	{Verdict: GuardCjVerdictCJ_LARGE, Name: "dropped_large", Help: "Messages that were dropped, as they or their tokens are too long, or have too many options."},
	{Verdict: GuardCjVerdictCJ_MALFORMED, Name: "dropped_malformed", Help: "Messages that were dropped, as they are malformed CoAP."},
}

// Counters say what a Guard has done, for people and for Prometheus.
func (g *Guard) Counters() ([]api.Counter, error) {
	return counters.Read(g.objects.CjCounters, verdicts)
}

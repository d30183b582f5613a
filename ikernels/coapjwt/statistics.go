package coapjwt

import (
	"fmt"

	"github.com/lambdanic/lambdanic/api"
)

// A counter is what users see of a verdict.
type counter struct {
	verdict    GuardCjVerdict
	name, help string
}

// counters are in the order of `lambdanic ik stats`. The table in README.md lists them, too.
var counters = []counter{
	{GuardCjVerdictCJ_PASSED, "passed", "Requests that went to the server, as one of the keys has signed their token."},
	{GuardCjVerdictCJ_OTHER, "other", "Messages that went to the server, as they are no requests: responses, acknowledgements, resets and pings."},
	{GuardCjVerdictCJ_FORGED, "dropped_signature", "Requests that were dropped, as none of the keys has signed their token."},
	{GuardCjVerdictCJ_ALGORITHM, "dropped_algorithm", "Requests that were dropped, as their token is not for HS256."},
	{GuardCjVerdictCJ_TOKEN_FORM, "dropped_token", "Requests that were dropped, as their token is not three parts in base64url, or its header is malformed."},
	{GuardCjVerdictCJ_NO_TOKEN, "dropped_no_token", "Requests that were dropped, as they have no payload, or no token in it."},
	{GuardCjVerdictCJ_PAYLOAD, "dropped_payload", "Requests that were dropped, as their payload is not one map in CBOR, or has two tokens."},
	{GuardCjVerdictCJ_BLOCKWISE, "dropped_blockwise", "Requests that were dropped, as they are a part of a larger one."},
	{GuardCjVerdictCJ_LARGE, "dropped_large", "Messages that were dropped, as they or their tokens are too long, or have too many options."},
	{GuardCjVerdictCJ_MALFORMED, "dropped_malformed", "Messages that were dropped, as they are malformed CoAP."},
}

// Counters say what a Guard has done, for people and for Prometheus.
func (g *Guard) Counters() ([]api.Counter, error) {
	counts, err := g.counts()
	if err != nil {
		return nil, err
	}
	var all []api.Counter
	for _, c := range counters {
		all = append(all, api.Counter{Name: c.name, Value: counts[c.verdict], Help: c.help})
	}
	return all, nil
}

// counts says how many messages there were of each verdict.
func (g *Guard) counts() (n [GuardCjVerdictCJ_VERDICTS]uint64, err error) {
	var cpus [][GuardCjVerdictCJ_VERDICTS]uint64
	if err := g.objects.CjCounters.Lookup(uint32(0), &cpus); err != nil {
		return n, fmt.Errorf("read the counters of coap-jwt: %w", err)
	}
	for _, cpu := range cpus {
		for i := range n {
			n[i] += cpu[i]
		}
	}
	return n, nil
}

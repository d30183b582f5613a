package sourcefilter

import (
	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/counters"
)

// verdicts are in the order of `lambdanic ik stats`. The table in README.md lists them, too.
var verdicts = []counters.Counter[FilterSfVerdict]{
	{Verdict: FilterSfVerdictSF_PASSED, Name: "passed", Help: "Datagrams that went on to the next ikernel, or to the server."},
	{Verdict: FilterSfVerdictSF_SOURCE, Name: "dropped_source", Help: "Datagrams that were dropped, as no prefix that is allowed has their source."},
	{Verdict: FilterSfVerdictSF_RATE, Name: "dropped_rate", Help: "Datagrams that were dropped, as their source had sent too many."},
}

// Counters say what a Filter has done, for people and for Prometheus.
func (f *Filter) Counters() ([]api.Counter, error) {
	return counters.Read(f.objects.SfCounters, verdicts)
}

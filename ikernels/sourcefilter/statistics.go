package sourcefilter

import (
	"fmt"

	"github.com/lambdanic/lambdanic/api"
)

// A counter is what users see of a verdict.
type counter struct {
	verdict    FilterSfVerdict
	name, help string
}

// counters are in the order of `lambdanic ik stats`. The table in README.md lists them, too.
var counters = []counter{
	{FilterSfVerdictSF_PASSED, "passed", "Datagrams that went on to the next ikernel, or to the server."},
	{FilterSfVerdictSF_SOURCE, "dropped_source", "Datagrams that were dropped, as no prefix that is allowed has their source."},
	{FilterSfVerdictSF_RATE, "dropped_rate", "Datagrams that were dropped, as their source had sent too many."},
}

// Counters say what a Filter has done, for people and for Prometheus.
func (f *Filter) Counters() ([]api.Counter, error) {
	counts, err := f.counts()
	if err != nil {
		return nil, err
	}
	var all []api.Counter
	for _, c := range counters {
		all = append(all, api.Counter{Name: c.name, Value: counts[c.verdict], Help: c.help})
	}
	return all, nil
}

// counts says how many datagrams there were of each verdict.
func (f *Filter) counts() (n [FilterSfVerdictSF_VERDICTS]uint64, err error) {
	var cpus [][FilterSfVerdictSF_VERDICTS]uint64
	if err := f.objects.SfCounters.Lookup(uint32(0), &cpus); err != nil {
		return n, fmt.Errorf("read the counters of source-filter: %w", err)
	}
	for _, cpu := range cpus {
		for i := range n {
			n[i] += cpu[i]
		}
	}
	return n, nil
}

package timeline

import (
	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/report"
)

// Budget is how many ns of each second namespaces share on each CPU. The generator gets the rest of its CPU, and offers more than they serve.
const Budget = 3e8

// Bandwidth is how many bits per second namespaces share, where they share what is sent: less than they would send.
const Bandwidth = 2e8

// Weights are those of namespaces, by their numbers.
type Weights map[uint32]uint64

// Quotas are these weights, without other limits.
func (w Weights) Quotas() map[uint32]api.Quota {
	quotas := map[uint32]api.Quota{}
	for number, weight := range w {
		quotas[number] = api.Quota{Weight: &weight}
	}
	return quotas
}

var equal, weighted = Weights{1: 1, 2: 1, 3: 1}, Weights{1: 40, 2: 40, 3: 20}

// Coming is how three sharers, of namespaces 1 to 3, come one after the other; then their weights change, and the last one leaves (NICA, figure 6a).
var Coming = []struct {
	Sharers int
	Weights Weights
}{{1, equal}, {2, equal}, {3, equal}, {3, weighted}, {2, weighted}}

// Fairness is how fairly three shared who came like that.
type Fairness struct {
	Alone, Together                report.Samples // what one was delivered alone, and all three by the changed weights
	jain, weighted, left, settling report.Samples
}

// Add adds what was measured once.
func (f *Fairness) Add(t *Timeline) {
	halves := []float64{0.5, 0.5, 0}
	f.Alone = append(f.Alone, Sum(t.Rates(0)))
	f.jain = append(f.jain, Jain(t.Rates(2)))
	f.Together = append(f.Together, Sum(t.Rates(3)))
	f.weighted = append(f.weighted, Deviation(t.Rates(3), []float64{0.4, 0.4, 0.2}))
	f.left = append(f.left, Deviation(t.Rates(4), halves))
	f.settling = append(f.settling, t.Settling(4, halves))
}

// Results compares it with the goals, one of which is by how many points shares may be off. The names begin with a prefix.
func (f *Fairness) Results(prefix, source string, points float64) []report.Result {
	return []report.Result{
		report.Compare(prefix+"off_40_40_20", "points", report.Lower, source, f.weighted, report.Goal(points)),
		report.Compare(prefix+"off_50_50_when_one_left", "points", report.Lower, source, f.left, report.Goal(points)),
		report.Compare(prefix+"settled_when_one_left", "ms", report.Lower, source, f.settling, report.Goal(200)),
		report.Compare(prefix+"jain_of_equal", "", report.Higher, source, f.jain, report.Goal(0.99)),
	}
}

// Parts are what each sharer got of what it gets alone.
func Parts(got, alone []float64) []float64 {
	parts := make([]float64, len(got))
	for i, v := range got {
		parts[i] = v / alone[i]
	}
	return parts
}

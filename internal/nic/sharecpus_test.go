package nic

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// askOnCPUs has contenders ask, each on its CPUs and on all of these at once, until all took so many nanoseconds together.
func askOnCPUs(t testing.TB, n *NIC, list []contender, on [][]int, until float64) {
	t.Helper()
	var over atomic.Bool
	var group sync.WaitGroup
	for _, cpu := range allowed(t) {
		var here []contender
		for i, c := range list {
			if slices.Contains(on[i], cpu) {
				here = append(here, c)
			}
		}
		if len(here) == 0 {
			continue
		}
		group.Go(func() {
			onCPU(t, cpu, func() {
				for !over.Load() && !t.Failed() {
					askInTurn(t, n, here)
				}
			})
		})
	}
	before, deadline := sum(allTaken(t, n, list)), time.Now().Add(time.Minute)
	for sum(allTaken(t, n, list))-before < until && !t.Failed() {
		if time.Now().After(deadline) {
			t.Error("they took too little in a minute")
		}
		time.Sleep(time.Millisecond)
	}
	over.Store(true)
	group.Wait()
}

// What a namespace takes on one CPU lessens what it gets on another where others want it: on no CPU does one get time that another, with less by
// its weight, asks for there. Each CPU gives as much as the machine lets it, so it is not said how much each gets; test/shares does.
func TestSharesAcrossCPUs(t *testing.T) {
	cpus := allowed(t)
	if len(cpus) < 2 {
		t.Skip("needs two CPUs")
	}
	both, first, other := cpus[:2], cpus[:1], cpus[1:2]
	names := []string{"packet", "stream", "assemble"}
	for _, c := range []struct {
		name    string
		on      [][]int
		weights []uint64
	}{
		{"one on both, another on the first", [][]int{both, first}, []uint64{100, 100}},
		{"one on both, another on each", [][]int{both, first, other}, []uint64{100, 100, 100}},
		{"one on both, two on the first", [][]int{both, first, first}, []uint64{100, 100, 100}},
		{"one of twice the weight on both, another on each", [][]int{both, first, other}, []uint64{200, 100, 100}},
		{"one of half the weight on both, two on the first", [][]int{both, first, first}, []uint64{50, 100, 50}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newTestNIC(t)
			var list []contender
			weights := map[uint32]uint64{}
			for i := range c.on {
				who := contender{namespace: uint32(3 + i), workload: workloads[names[i]], rounds: spinRounds}
				deploy(t, n, of(who.namespace, spinning(t, who.workload)))
				list, weights[who.namespace] = append(list, who), c.weights[i]
			}
			shared(t, n, second/10, weights) // much less than each asks for
			askOnCPUs(t, n, list, c.on, 4*settling)
			before := make([][]float64, len(list))
			for i, who := range list {
				before[i] = taken(t, n, who.workload)
			}
			askOnCPUs(t, n, list, c.on, 4*measuring)
			got, perWeight := make([][]float64, len(list)), make([]float64, len(list))
			for i, who := range list {
				got[i] = taken(t, n, who.workload)
				for cpu := range got[i] {
					got[i][cpu] -= before[i][cpu]
				}
				perWeight[i] = sum(got[i]) / float64(c.weights[i])
			}
			wantMaxMin(t, c.on, got, perWeight)
		})
	}
}

// wantMaxMin wants that who has more by weight than another one got little on the CPUs on which both asked.
func wantMaxMin(t *testing.T, on [][]int, got [][]float64, perWeight []float64) {
	t.Helper()
	for i := range got {
		for j := range got {
			for _, cpu := range on[i] {
				if slices.Contains(on[j], cpu) && perWeight[i] > 1.2*perWeight[j] && got[i][cpu] > got[j][cpu]/4 {
					t.Errorf("%d got %.0f ns on CPU %d, where %d got %.0f, and by weight %.0f and %.0f", i, got[i][cpu], cpu, j, got[j][cpu], perWeight[i], perWeight[j])
				}
			}
		}
	}
}

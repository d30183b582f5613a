package nic

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
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
				who := contender{namespace: uint32(3 + i), workload: workloads[names[i]], weight: c.weights[i], rounds: spinRounds}
				deploy(t, n, of(who.namespace, spinning(t, who.workload)))
				list, weights[who.namespace] = append(list, who), c.weights[i]
			}
			shared(t, n, api.Budget{Time: second / 10}, weights) // much less than each asks for
			askOnCPUs(t, n, list, c.on, 4*settling)
			var wrong string
			for range 5 { // what else the machine does comes between
				if wrong = notMaxMin(c.on, byWeight(t, n, list, c.on)); wrong == "" {
					return
				}
			}
			t.Error(wrong)
		})
	}
}

// byWeight returns how many nanoseconds contenders are charged for on each CPU, by their weights, while they ask.
func byWeight(t *testing.T, n *NIC, list []contender, on [][]int) [][]float64 {
	t.Helper()
	before, got := make([][]float64, len(list)), make([][]float64, len(list))
	for i, who := range list {
		before[i] = taken(t, n, who.workload)
	}
	askOnCPUs(t, n, list, on, 4*measuring)
	for i, who := range list {
		got[i] = taken(t, n, who.workload)
		for cpu := range got[i] {
			got[i][cpu] = (got[i][cpu] - before[i][cpu]) / float64(who.weight)
		}
	}
	return got
}

// notMaxMin says who got much more by weight than another one, and at least half as much as that one on a CPU on which both asked; "" if nobody did. On a
// busy or slow machine, what is given at once is too coarse for less. Without a word from the other CPU, the one on both has more than twice as much.
func notMaxMin(on [][]int, byWeight [][]float64) string {
	for i := range byWeight {
		for j := range byWeight {
			for _, cpu := range on[i] {
				all, others := sum(byWeight[i]), sum(byWeight[j])
				if slices.Contains(on[j], cpu) && all > 1.7*others && byWeight[i][cpu] > byWeight[j][cpu]/2 {
					return fmt.Sprintf("by weight, %d got %.0f ns on all CPUs and %d got %.0f; but on CPU %d it was %.0f and %.0f", i, all, j, others, cpu, byWeight[i][cpu], byWeight[j][cpu])
				}
			}
		}
	}
	return ""
}

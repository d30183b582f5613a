// Package shares plays through what the NIC program's rules of shares (bpf/share.h) give to tenants on up to 32 CPUs.
package shares

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/limits"
)

const (
	half       = uint64(limits.RawLnShareLN_BUDGET) / 2 // of each CPU's time
	packetNS   = int(limits.RawLnShareLN_PACKET_NS)
	measuredNS = 150e6 // HALF_NS
)

// A tenant asks on some CPUs: all the time, or once in each gap.
type tenant struct {
	weight       uint64
	runNS, gapNS int
	cpus, later  uint64 // as bits: where it asks at first, and where it does when it is measured
	frame        int    // bytes of an answer
}

// got is what came of a tenant to a CPU.
type got struct{ packets, refused int }

// build builds the simulator.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "shares")
	out, err := exec.Command("clang-19", "-std=gnu17", "-g", "-O2", "-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-Wall", "-Werror",
		"-Wno-unused-function", "-I../fuzz/shim", "-I../../bpf", "-o", binary, "shares.c").CombinedOutput()
	if err != nil {
		t.Fatalf("build the simulator: %v\n%s", err, out)
	}
	return binary
}

// play returns what each tenant got on each CPU, after shares have settled. Tenants that ask for nothing have the absent weights.
func play(t *testing.T, binary string, seed uint64, share limits.Budget, cpus int, tenants []tenant, absent uint64) [][]got {
	t.Helper()
	sum := absent
	for _, who := range tenants {
		sum += who.weight
	}
	in := fmt.Sprintln(seed, share.Share, share.ByteNs, cpus, len(tenants))
	for _, who := range tenants {
		in += fmt.Sprintln(limits.Pace(sum, who.weight), who.runNS, who.gapNS, who.frame, who.cpus, who.later)
	}
	cmd := exec.Command(binary)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(out)
	all := make([][]got, len(tenants))
	for i := range all {
		all[i] = make([]got, cpus)
		for c := range all[i] {
			if _, err := fmt.Fscan(r, &all[i][c].packets, &all[i][c].refused); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// randomTenant asks on some of the CPUs, by runs of one of these lengths.
func randomTenant(r *rand.Rand, cpus int, runsNS ...int) tenant {
	who := tenant{
		weight: []uint64{20, 50, 100, 100, 200, 1000}[r.IntN(6)],
		runNS:  runsNS[r.IntN(len(runsNS))],
		gapNS:  []int{0, 0, 0, 200_000}[r.IntN(4)],
		cpus:   1 + r.Uint64N(1<<cpus-1),
	}
	who.later = who.cpus
	return who
}

// took is for how long a tenant was served on a CPU.
func (who tenant) took(g got) float64 {
	return float64((g.packets - g.refused) * (packetNS + who.runNS))
}

// Of a hundred cases in which tenants ask on any CPUs, shares are max-min fair over all CPUs in all but a few, and no CPU's budget is wasted in any.
// An allocation is max-min fair if each tenant has a bottleneck where no other one gets more than it does, by weight (Bertsekas and Gallager, "Data
// Networks", 6.5.2): so wherever a tenant is refused, those who have more on all CPUs get nothing.
func TestMaxMinFair(t *testing.T) {
	binary := build(t)
	const cases, few = 100, 5
	unfair := 0
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 0))
		cpus := []int{1, 2, 4, 8, 16, 32}[r.IntN(6)]
		tenants := make([]tenant, 2+r.IntN(5))
		for i := range tenants {
			tenants[i] = randomTenant(r, cpus, 1000, 3000, 10_000, 30_000)
		}
		absent := []uint64{0, 0, 120_000}[r.IntN(3)]
		all := play(t, binary, seed, limits.Budget{Share: half}, cpus, tenants, absent)
		if c := unfairOn(cpus, tenants, all); c >= 0 {
			t.Logf("seed %d: CPU %d serves one that has more: %+v", seed, c, tenants)
			unfair++
		}
		if c := wastedOn(cpus, tenants, all); c >= 0 {
			t.Errorf("seed %d: CPU %d refuses requests, and has much left of its budget: %+v", seed, c, tenants)
		}
	}
	if unfair > few {
		t.Errorf("%d of %d cases are unfair, want %d at most", unfair, cases, few)
	}
}

const budget = measuredNS / 2

// refuses says whether a tenant does not get nearly all that it asks for.
func (g got) refuses() bool { return g.refused > g.packets/5 }

// unfairOn is a CPU on which a tenant is refused and another one served that has 5 % more by weight, on all CPUs; -1 if there is none.
func unfairOn(cpus int, tenants []tenant, all [][]got) int {
	byWeight := make([]float64, len(tenants))
	for i, who := range tenants {
		for _, g := range all[i] {
			byWeight[i] += who.took(g) / float64(who.weight)
		}
	}
	for c := range cpus {
		for i := range tenants {
			for j, other := range tenants {
				if all[i][c].refuses() && byWeight[j] > 1.05*byWeight[i] && other.took(all[j][c]) > budget/50 {
					return c
				}
			}
		}
	}
	return -1
}

// wastedOn is a CPU on which a tenant is refused, although 3 % of the budget are left; -1 if there is none.
func wastedOn(cpus int, tenants []tenant, all [][]got) int {
	for c := range cpus {
		used, refuses := 0.0, false
		for i, who := range tenants {
			used += who.took(all[i][c])
			refuses = refuses || all[i][c].refuses()
		}
		if refuses && used < 0.97*budget {
			return c
		}
	}
	return -1
}

// Of what the links send, tenants that ask on any CPUs get their max-min fair shares, within a percentage point. In half of the cases, they begin to ask on
// other CPUs just before.
func TestMaxMinFairBandwidth(t *testing.T) {
	const cases, rate = 100, 25e6 // bytes a second
	binary := build(t)
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 1))
		cpus := []int{1, 2, 4, 8, 16, 32}[r.IntN(6)]
		tenants := make([]tenant, 2+r.IntN(5))
		for i := range tenants {
			tenants[i] = randomTenant(r, cpus, 100, 1000)
			tenants[i].frame = []int{110, 500, 1500}[r.IntN(3)]
			if seed%2 == 1 {
				tenants[i].later = 1 + r.Uint64N(1<<cpus-1)
			}
		}
		all := play(t, binary, seed, limits.BudgetOf(api.Budget{Bandwidth: 8 * rate}), cpus, tenants, []uint64{0, 0, 120_000}[r.IntN(3)])
		want := fair(tenants, rate)
		for i, who := range tenants {
			sent := 0.0
			for _, g := range all[i] {
				sent += float64((g.packets - g.refused) * who.frame)
			}
			if got := sent / measuredNS * 1e9; math.Abs(got-want[i]) > rate/100 {
				t.Errorf("seed %d: tenant %d of %+v gets %.1f %% of the rate on %d CPUs, want %.1f %%", seed, i, tenants, got/rate*100, cpus, want[i]/rate*100)
			}
		}
	}
}

// fair are the max-min fair shares of a rate: who asks for less than its part by weight gets that, and the others share the rest.
func fair(tenants []tenant, rate float64) []float64 {
	got := make([]float64, len(tenants))
	for level := 0.0; ; {
		weights := 0.0 // of those who want more
		for i, who := range tenants {
			if got[i] = min(who.wants(), level*float64(who.weight)); got[i] < who.wants() {
				weights += float64(who.weight)
			}
		}
		more := rate - sum(got)
		if weights == 0 || more < rate/1e6 {
			return got
		}
		level += more / weights / 2
	}
}

// wants is how many bytes a second a tenant asks for.
func (who tenant) wants() float64 {
	if who.gapNS == 0 {
		return math.Inf(1)
	}
	return float64(bits.OnesCount64(who.later)*who.frame) / float64(who.gapNS) * 1e9
}

func sum(of []float64) (sum float64) {
	for _, x := range of {
		sum += x
	}
	return sum
}

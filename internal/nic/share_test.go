package nic

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/test/packets"
)

// shared has namespaces share a budget by these weights.
func shared(t testing.TB, n *NIC, budget api.Budget, weights map[uint32]uint64) {
	t.Helper()
	limits := backend.Limits{Budget: budget, Quotas: map[uint32]api.Quota{}}
	for number, w := range weights {
		limits.Quotas[number] = api.Quota{Weight: &w}
	}
	if err := n.Limit(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
}

// askShared asks a lambda and says whether it answered. All else that comes must be "busy".
func askShared(t testing.TB, n *NIC, workload, method uint32) bool {
	t.Helper()
	h, _, ok, err := n.Ask(api.Header{Workload: workload, Method: method, Request: requests.Add(1)}, make([]byte, 8), nil)
	if err != nil || !ok {
		t.Errorf("asked %#x: %t, %v", workload, ok, err)
		return false
	}
	if h.Type != api.TypeResponse {
		wantCode(t, "a request", h, api.CodeBusy)
	}
	return h.Type == api.TypeResponse
}

// taken is what a lambda was charged on each CPU: nanoseconds. It may not have been far behind.
func taken(t testing.TB, n *NIC, workload uint32) (ns []float64) {
	t.Helper()
	var cpus []program.Cost
	if err := n.prog.LnCosts.Lookup(slotOf(n, workload), &cpus); err != nil {
		t.Fatal(err)
	}
	for _, c := range cpus {
		ns = append(ns, float64(c.VirtualNs))
	}
	return ns
}

// allTaken is what each contender was charged, on all CPUs.
func allTaken(t testing.TB, n *NIC, list []contender) (ns []float64) {
	t.Helper()
	for _, c := range list {
		ns = append(ns, sum(taken(t, n, c.workload)))
	}
	return ns
}

func sum(of []float64) (sum float64) {
	for _, x := range of {
		sum += x
	}
	return sum
}

// A contender asks one lambda all the time, as long as it takes part.
type contender struct {
	namespace uint32
	weight    uint64
	workload  uint32
	rounds    uint32 // of spin
	away      bool
}

// askInTurn has each contender ask a hundred times, and returns how many requests were answered.
func askInTurn(t testing.TB, n *NIC, list []contender) (answered int) {
	t.Helper()
	for range 100 {
		for _, c := range list {
			if !c.away && askShared(t, n, c.workload, c.rounds) {
				answered++
			}
		}
	}
	return answered
}

// contend has contenders ask in turn until they took so many nanoseconds together. It returns what share of that each was charged, and how
// many requests were answered.
func contend(t testing.TB, n *NIC, list []contender, until float64) (shares []float64, answered int) {
	t.Helper()
	before := allTaken(t, n, list)
	for deadline := time.Now().Add(time.Minute); ; {
		answered += askInTurn(t, n, list)
		shares = allTaken(t, n, list)
		for i := range shares {
			shares[i] -= before[i]
		}
		if all := sum(shares); all >= until {
			for i := range shares {
				shares[i] /= all
			}
			return shares, answered
		}
		if t.Failed() || time.Now().After(deadline) {
			t.Fatalf("they took %v ns", shares)
		}
	}
}

const (
	settling  = second / 40
	measuring = second / 20
)

// scarce has contenders share a budget that is as large as what the one with the least demand asks for, and so each asks for more than its
// share. It returns the budget.
func scarce(t testing.TB, n *NIC, list []contender, weights map[uint32]uint64) uint64 {
	t.Helper()
	shared(t, n, api.Budget{Time: second}, weights)
	began := time.Now()
	shares, _ := contend(t, n, list, settling)
	budget := uint64(slices.Min(shares) * settling / time.Since(began).Seconds())
	shared(t, n, api.Budget{Time: budget}, weights)
	return budget
}

// wantShares has contenders ask until they get these shares, and five times at most, as what else the machine does comes between. It returns how many
// requests were answered.
func wantShares(t testing.TB, when string, n *NIC, list []contender, want []float64) (answered int) {
	t.Helper()
	var got []float64
	for range 5 {
		shares, more := contend(t, n, list, measuring)
		got, answered = shares, answered+more
		off := 0.0
		for i := range want {
			off = max(off, math.Abs(got[i]-want[i]))
		}
		if off <= 0.02 {
			return answered
		}
	}
	t.Errorf("%s: the shares are %.3f, want %.3f", when, got, want)
	return answered
}

// Namespaces that ask for more than there is get NIC time by their weights, whatever their lambdas cost and whoever comes and goes; what one
// leaves goes to the others, and all together get the budget.
func TestShares(t *testing.T) {
	n := newTestNIC(t)
	list := []contender{
		{namespace: 3, weight: 40, workload: workloads["packet"], rounds: spinRounds / 8},
		{namespace: 4, weight: 40, workload: workloads["stream"], rounds: spinRounds / 2},
		{namespace: 5, weight: 20, workload: workloads["assemble"], rounds: spinRounds / 8},
	}
	weights := map[uint32]uint64{}
	for _, c := range list {
		deploy(t, n, of(c.namespace, spinning(t, c.workload)))
		weights[c.namespace] = c.weight
	}
	onOneCPU(t, func(int) {
		budget := scarce(t, n, list, weights)
		began := time.Now()
		_, answered := contend(t, n, list, settling)
		more := wantShares(t, "with all", n, list, []float64{0.4, 0.4, 0.2})
		// What was saved and what can be overdrawn may have been used as well, and a run may begin when any time is left.
		most := float64(budget)*time.Since(began).Seconds() + float64(limits.RawLnShareLN_SAVED_NS+limits.RawLnShareLN_OVERDRAWN_NS)
		if least := float64(answered+more) * leastRun / 8; least > most {
			t.Errorf("%d runs took %.0f ns at least, want %.0f ns at most", answered+more, least, most)
		}
		list[0].away = true
		contend(t, n, list, settling)
		wantShares(t, "without the first", n, list, []float64{0, 2. / 3, 1. / 3})
		list[0].away = false
		contend(t, n, list, settling) // it may take a little more first
		wantShares(t, "with all again", n, list, []float64{0.4, 0.4, 0.2})
		weights[3], weights[4], weights[5] = 1, 1, 1
		shared(t, n, api.Budget{Time: budget}, weights)
		contend(t, n, list, settling)
		wantShares(t, "with equal weights", n, list, []float64{1. / 3, 1. / 3, 1. / 3})
	})
}

// The lambdas of a namespace share what it gets alike, and what one leaves goes to the others first.
func TestSharesOfLambdas(t *testing.T) {
	n := newTestNIC(t)
	list := []contender{
		{namespace: 3, workload: workloads["packet"], rounds: spinRounds / 8},
		{namespace: 3, workload: workloads["stream"], rounds: spinRounds / 2},
		{namespace: 4, workload: workloads["assemble"], rounds: spinRounds / 8},
	}
	for _, c := range list {
		deploy(t, n, of(c.namespace, spinning(t, c.workload)))
	}
	onOneCPU(t, func(int) {
		scarce(t, n, list, map[uint32]uint64{3: 1, 4: 1})
		contend(t, n, list, settling)
		wantShares(t, "with all", n, list, []float64{0.25, 0.25, 0.5})
		list[1].away = true
		contend(t, n, list, settling)
		wantShares(t, "without the second", n, list, []float64{0.5, 0, 0.5})
	})
}

// Of those who have not had their shares, namespaces come before lambdas, and nobody gets what is beyond the loan.
func TestLoan(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["packet"]
	deploy(t, n, of(tenant, version(t, w, 1, packetSpec)))
	shared(t, n, api.Budget{Time: 1}, map[uint32]uint64{tenant: 100})
	const now, before, after = 1 << 30, 1<<30 - 1, 1<<30 + 1
	for _, c := range []struct {
		who               string
		namespace, lambda uint64
		owed              int64
	}{
		{"a namespace that has not had its share", before, after, int64(limits.RawLnShareLN_OVERDRAWN_NS)},
		{"a lambda that has not", after, before, int64(limits.RawLnShareLN_OVERDRAWN_LAMBDAS_NS)},
		{"one that has", after, after, 0},
	} {
		for left, want := range map[int64]bool{1 - c.owed: true, -c.owed: false} {
			if err := errors.Join(
				putOnCPUs(n.prog.LnCpus, 0, limits.CPU{LeftNs: left, VirtualNs: now}),
				n.prog.LnTurnsTaken.Put(index(tenant), limits.RawLnTurns{}), // no other CPU told anything
				putOnCPUs(n.prog.LnAllowances, index(tenant), limits.Allowance{VirtualNs: c.namespace, LambdasNs: now}),
				putOnCPUs(n.prog.LnCosts, slotOf(n, w), program.Cost{VirtualNs: c.lambda}),
			); err != nil {
				t.Fatal(err)
			}
			if askShared(t, n, w, methodCount) != want {
				t.Errorf("%s: with %d ns left, it was served: %t, want %t", c.who, left, !want, want)
			}
		}
	}
}

// After a pause, a namespace or a lambda may take little at once: the rest of what it did not take is lost. Of a namespace that was refused lately, more is kept.
func TestUnspentIsLost(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["packet"]
	deploy(t, n, of(tenant, version(t, w, 1, packetSpec)))
	shared(t, n, api.Budget{Time: second}, map[uint32]uint64{tenant: 1, tenant + 1: 3})
	const all, pause, pace, filled = 1 << 50, 1 << 40, 4, 1 << 60
	for _, c := range []struct {
		what    string
		refused uint64
		want    uint64
	}{
		{"a namespace that paused", filled - uint64(limits.RawLnShareLN_OWED_FOR_NS), uint64(limits.RawLnShareLN_BEHIND_NS)},
		{"a namespace that was refused lately", filled - uint64(limits.RawLnShareLN_OWED_FOR_NS) + 1, uint64(limits.RawLnShareLN_OWED_NS)},
	} {
		if err := errors.Join(
			putOnCPUs(n.prog.LnCpus, 0, limits.CPU{LeftNs: second, FilledNs: filled, VirtualNs: all}),
			putOnCPUs(n.prog.LnAllowances, index(tenant), limits.Allowance{VirtualNs: all - pause, LambdasNs: all, RefusedNs: c.refused}),
			putOnCPUs(n.prog.LnCosts, slotOf(n, w), program.Cost{VirtualNs: all - pause}),
		); err != nil {
			t.Fatal(err)
		}
		if !askShared(t, n, w, methodCount) {
			t.Fatalf("%s: refused", c.what)
		}
		behind, lambdaBehind := leastBehind(t, n, w, all)
		if want := pace * c.want; behind > want || behind < want/2 {
			t.Errorf("%s is %d ns behind, want %d and less what it took", c.what, behind, want)
		}
		if want := uint64(limits.RawLnShareLN_BEHIND_NS); lambdaBehind > want || lambdaBehind < want/2 {
			t.Errorf("its lambda is %d ns behind, want %d and less what it took", lambdaBehind, want)
		}
	}
}

// leastBehind is how far a namespace and its lambda are behind all others, on the CPU where that is least.
func leastBehind(t *testing.T, n *NIC, workload uint32, all uint64) (namespace, lambda uint64) {
	t.Helper()
	var mine []limits.Allowance
	var costs []program.Cost
	if err := errors.Join(n.prog.LnAllowances.Lookup(index(tenant), &mine), n.prog.LnCosts.Lookup(slotOf(n, workload), &costs)); err != nil {
		t.Fatal(err)
	}
	namespace, lambda = math.MaxUint64, math.MaxUint64
	for cpu := range mine {
		namespace = min(namespace, all-mine[cpu].VirtualNs)
		lambda = min(lambda, all-costs[cpu].VirtualNs)
	}
	return namespace, lambda
}

// Nobody is refused while the CPU has time left, however small its weight, and however long others did nothing.
func TestSharesOfIdleCPU(t *testing.T) {
	n := newTestNIC(t)
	few, many := workloads["packet"], workloads["stream"]
	deploy(t, n, of(3, version(t, few, 1, packetSpec)), of(4, version(t, many, 1, packetSpec)))
	onOneCPU(t, func(int) {
		shared(t, n, api.Budget{Time: second}, map[uint32]uint64{3: 1, 4: api.MaxNamespaceWeight})
		for i := range 5000 {
			if !askShared(t, n, few, methodCount) || i%1000 == 0 && !askShared(t, n, many, methodCount) {
				t.Fatalf("request %d was refused", i)
			}
		}
	})
}

// Without a budget, a weight means nothing.
func TestWeightsWithoutBudget(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["packet"]
	deploy(t, n, of(tenant, version(t, w, 1, packetSpec)))
	onOneCPU(t, func(int) {
		shared(t, n, api.Budget{Time: 1}, map[uint32]uint64{tenant: 100})
		askShared(t, n, w, methodCount)
		if askShared(t, n, w, methodCount) {
			t.Error("with a budget of nothing, a second request was answered")
		}
		shared(t, n, api.Budget{Time: 0}, map[uint32]uint64{tenant: 100})
		if !askShared(t, n, w, methodCount) {
			t.Error("without a budget, a request was refused")
		}
	})
}

// As with quotas, the error is the answer only to what was certainly not executed.
func TestWhatIsAnsweredOverShare(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)), of(tenant, version(t, workloads["assemble"], 1, assembleSpec)))
	first := fragments("packet", methodEcho, randomBytes(8), 8)[0]
	again := first
	again.RPC.Flags |= api.FlagResend
	whole := fragments("assemble", methodStamp, randomBytes(100), 50)
	onOneCPU(t, func(int) {
		call(t, n, whole[0])
		reply, _ := call(t, n, whole[1])
		shared(t, n, api.Budget{Time: 1}, map[uint32]uint64{tenant: 100})
		// The first packet of each lambda is served: the lambda has had nothing yet.
		askShared(t, n, workloads["packet"], methodEcho)
		call(t, n, whole[1])
		h, _ := call(t, n, first)
		wantCode(t, "a request", h, api.CodeBusy)
		for what, f := range map[string]packets.Frame{"a request that is sent again": again, "a pull": pull(whole[1], reply, 1), "a second packet": whole[1]} {
			if h, _ := call(t, n, f); h.Type != 0 {
				t.Errorf("%s: got %+v, want no answer", what, h)
			}
		}
	})
	if s := accounted(t, n, tenant); s.OverShare != 4 || s.OverQuota != 0 || s.Errors != 1 {
		t.Errorf("counted %+v, want 4 refused, 1 of them with an error", s)
	}
}

package nic

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

func of(namespace uint32, d backend.Deployment) backend.Deployment {
	d.NamespaceID = namespace
	return d
}

// accounted is what a namespace counted.
func accounted(t testing.TB, n *NIC, namespace uint32) backend.Stats {
	t.Helper()
	all, err := n.Accounts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all[namespace]
}

// asked asks a lambda for its revision once, and fails the test if there is no answer.
func asked(t testing.TB, n *NIC, workload uint32) {
	h, _, ok, err := n.Ask(api.Header{Workload: workload, Method: methodCount, Request: requests.Add(1)}, make([]byte, 8), nil)
	if err != nil || !ok || h.Type != api.TypeResponse {
		t.Errorf("workload %#x: %+v, %t, %v", workload, h, ok, err)
	}
}

// drained waits until so many revisions are loaded.
func drained(t testing.TB, n *NIC, loaded int) {
	t.Helper()
	eventually(t, "superseded revisions are freed", func() bool { return usage(n).slots == loaded })
}

// Whatever becomes of a namespace's lambdas, each request counts for it once, and at no moment fewer or more than once.
func TestAccountsAreExact(t *testing.T) {
	c := testConfig(t)
	n := open(t, c)
	of3 := []uint32{workloads["packet"], workloads["assemble"]}
	of5 := workloads["stream"]
	deploy(t, n, of(3, version(t, of3[0], 1, packetSpec)), of(3, version(t, of3[1], 1, briefSpec)), of(5, version(t, of5, 1, packetSpec)))
	var stop atomic.Bool
	var sent3, sent5 atomic.Uint64
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			for !stop.Load() {
				for _, w := range of3 {
					sent3.Add(1)
					asked(t, n, w)
				}
				sent5.Add(1)
				asked(t, n, of5)
			}
		})
	}
	work.Go(func() {
		for last := uint64(0); !stop.Load(); {
			now := accounted(t, n, 3).Requests
			if most := sent3.Load(); now < last || now > most {
				t.Errorf("%d requests were counted, after %d, and %d were sent", now, last, most)
				return
			}
			last = now
		}
	})
	for revision := uint32(2); revision <= 3; revision++ {
		deploy(t, n, of(3, version(t, of3[0], revision, packetSpec)), of(3, version(t, of3[1], revision, briefSpec)))
		drained(t, n, 3)
	}
	stop.Store(true)
	work.Wait()
	check := func(when string) {
		t.Helper()
		for namespace, want := range map[uint32]uint64{3: sent3.Load(), 5: sent5.Load()} {
			s := accounted(t, n, namespace)
			if s.Requests != want || s.Replies != want || s.BytesIn != 8*want || s.Errors+s.Drops+s.Faults != 0 || s.Samples == 0 || s.SampledNS == 0 {
				t.Errorf("%s, namespace %d counted %+v, want %d requests", when, namespace, s, want)
			}
		}
	}
	check("when all superseded revisions are gone")
	shut(t, n)
	n = open(t, c)
	check("with the next daemon")
	for _, w := range append(of3, of5) {
		if err := n.Remove(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	check("when all are removed")
	drained(t, n, 0)
	check("when all are gone")
	shut(t, n)
	n = open(t, c)
	check("with the daemon after that")
	if list, err := n.Status(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("it runs %+v (%v)", list, err)
	}
}

// Every counter is in the account, each in its place.
func TestAccountsOfErrors(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["packet"]
	deploy(t, n, of(3, version(t, w, 1, packetSpec)))
	for i, method := range []uint32{methodFault, methodDrop, methodDrop, methodOutside, methodEcho, methodEcho, methodEcho} {
		list := fragments("packet", method, randomBytes(8), 8)
		if h, _ := call(t, n, list[0]); (h.Type == api.TypeResponse) != (i > 3) {
			t.Fatalf("method %d: got %+v", method, h)
		}
	}
	before, err := n.slotStats(slotOf(n, w))
	if err != nil || before.Requests != 7 || before.Errors != 2 || before.Faults != 2 || before.Drops != 2 || before.Replies != 3 {
		t.Fatalf("counted %+v (%v)", before, err)
	}
	if got := accounted(t, n, 3); got != before {
		t.Errorf("while it serves, the account is %+v, want %+v", got, before)
	}
	if err := n.Remove(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	drained(t, n, 0)
	if got := accounted(t, n, 3); got != before {
		t.Errorf("when it is gone, the account is %+v, want %+v", got, before)
	}
}

// A later namespace with the number's index counts from zero, and what is left of the earlier one does not disturb it.
func TestAccountOfALaterNamespace(t *testing.T) {
	const first, later = 2, 2 + api.MaxNamespaces
	n := newTestNIC(t)
	deploy(t, n, of(first, version(t, workloads["packet"], 1, packetSpec)), of(first, version(t, workloads["stream"], 1, packetSpec)))
	asked(t, n, workloads["packet"])
	asked(t, n, workloads["stream"])
	if err := n.Remove(t.Context(), workloads["packet"]); err != nil {
		t.Fatal(err)
	}
	drained(t, n, 1)
	if got := accounted(t, n, first).Requests; got != 2 {
		t.Fatalf("the first counted %d requests, want 2", got)
	}
	w := workloads["assemble"]
	deploy(t, n, of(later, version(t, w, 1, briefSpec)))
	if got := accounted(t, n, later).Requests; got != 0 {
		t.Errorf("the later one begins with %d requests", got)
	}
	for range 3 {
		asked(t, n, w)
	}
	for loaded, workload := range []uint32{workloads["stream"], w} {
		if err := n.Remove(t.Context(), workload); err != nil {
			t.Fatal(err)
		}
		drained(t, n, 1-loaded)
		if got := accounted(t, n, later).Requests; got != 3 {
			t.Errorf("the later one counted %d requests, want 3", got)
		}
	}
	deploy(t, n, of(first, version(t, w, 2, briefSpec))) // as if it drained longer than the later one lived
	asked(t, n, w)
	if err := n.Remove(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	drained(t, n, 0)
	if got := accounted(t, n, later).Requests; got != 3 {
		t.Errorf("the later one counted %d requests after the first was gone, want 3", got)
	}
}

// A revision that was refused, or belongs to no namespace, leaves no account.
func TestNoAccount(t *testing.T) {
	n := newTestNIC(t)
	p, err := n.Prepare(t.Context(), of(3, version(t, workloads["packet"], 1, packetSpec)))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Drop(); err != nil {
		t.Fatal(err)
	}
	deploy(t, n, version(t, workloads["packet"], 2, packetSpec))
	asked(t, n, workloads["packet"])
	if all, err := n.Accounts(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("accounts %+v (%v)", all, err)
	}
	shut(t, n)
	if all, err := n.Accounts(t.Context()); err != nil || all != nil {
		t.Errorf("after it closed: %+v (%v)", all, err)
	}
}

func TestSampleEvery(t *testing.T) {
	if api.SampleEvery != program.RootLnLimitLN_SAMPLE_EVERY {
		t.Errorf("api has %d, the NIC program %d", api.SampleEvery, program.RootLnLimitLN_SAMPLE_EVERY)
	}
}

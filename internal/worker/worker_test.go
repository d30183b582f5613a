package worker

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// memory is a backend that only remembers.
type memory struct {
	mu       sync.Mutex
	revs     map[uint32]uint32 // by workload
	refuse   error
	stuck    int        // removals that fail from now on
	together [][]uint32 // the workloads of each fused program
}

func (m *memory) Deploy(_ context.Context, d backend.Deployment) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuse != nil {
		return m.refuse
	}
	m.revs[d.Workload] = d.Revision
	return nil
}

func (m *memory) DeployFused(ctx context.Context, f backend.Fused) error {
	var workloads []uint32
	for _, d := range f.Serving {
		if err := m.Deploy(ctx, d); err != nil {
			return err
		}
		workloads = append(workloads, d.Workload)
	}
	m.together = append(m.together, workloads)
	return nil
}

func (m *memory) Remove(_ context.Context, workload uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stuck > 0 {
		m.stuck--
		return errors.New("stuck")
	}
	delete(m.revs, workload)
	return nil
}

func (m *memory) Status(context.Context) ([]backend.Status, error) {
	var all []backend.Status
	for id, r := range m.running() {
		all = append(all, backend.Status{Workload: id, Revision: r})
	}
	return all, nil
}

func (m *memory) Endpoint(uint32) (netip.AddrPort, bool) { return netip.AddrPort{}, false }

func (m *memory) running() map[uint32]uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.revs)
}

type oneArtifact struct{}

func (oneArtifact) Get(string) (*artifact.Artifact, error) {
	a := &artifact.Artifact{BPF: []byte("bpf"), Native: []byte("native")}
	a.Manifest.Spec.Targets = api.Targets()
	return a, nil
}

// bench is a store and a node with both targets.
type bench struct {
	*store.Store
	*Worker
	nic, process *memory
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := shortdir.New(t)
	st, err := store.Open(t.Context(), store.Config{DataDir: filepath.Join(dir, "d"), SocketDir: filepath.Join(dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	b := &bench{Store: st}
	b.Worker, b.nic, b.process = newNode(st, "n")
	return b
}

func newNode(st *store.Store, name string) (w *Worker, nic, process *memory) {
	nic, process = &memory{revs: map[uint32]uint32{}}, &memory{revs: map[uint32]uint32{}}
	return New(Config{Node: name, Store: st, Artifacts: oneArtifact{}, Places: []backend.Place{
		{Target: api.TargetNIC, Backend: nic, Host: netip.MustParseAddr("198.18.0.1")},
		{Target: api.TargetProcess, Backend: process, Host: netip.MustParseAddr("127.0.0.1")},
	}}), nic, process
}

// run has a worker sync, and follow until the test ends.
func run(t *testing.T, w *Worker) {
	t.Helper()
	if err := w.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Start(t.Context()))
}

func function(name string, t api.Target, nodes ...string) store.Function {
	return store.Function{Namespace: "default", Name: name, Artifact: name + "@sha256:0", Spec: api.Spec{Name: name}.Default(), Target: t, Nodes: nodes}
}

// propose makes a candidate.
func propose(t *testing.T, st *store.Store, f store.Function) *store.Function {
	t.Helper()
	c, err := st.Propose(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// await returns the statuses of f's nodes.
func await(t *testing.T, st *store.Store, f *store.Function) []store.Status {
	t.Helper()
	statuses, err := st.Await(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return statuses
}

// deploy makes f wanted, and waits for its nodes.
func deploy(t *testing.T, st *store.Store, f store.Function) *store.Function {
	t.Helper()
	c := propose(t, st, f)
	await(t, st, c)
	if err := st.Promote(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	await(t, st, c)
	return c
}

// Placed revisions run on their node, and a tried revision runs beside the wanted one until it is promoted or abandoned.
func TestFollow(t *testing.T) {
	b := newBench(t)
	run(t, b.Worker)
	f := deploy(t, b.Store, function("web", api.TargetNIC, "n"))
	if b.nic.running()[f.Workload] != 1 {
		t.Fatalf("nic runs %v", b.nic.running())
	}
	c := propose(t, b.Store, function("web", api.TargetProcess, "n"))
	if s := await(t, b.Store, c); s[0].State != api.StateReady || s[0].Revision != 2 || s[0].Target != api.TargetProcess {
		t.Errorf("the candidate is %+v", s)
	}
	if b.nic.running()[f.Workload] != 1 || b.process.running()[f.Workload] != 2 {
		t.Errorf("beside each other run %v and %v", b.nic.running(), b.process.running())
	}
	if err := b.Promote(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	await(t, b.Store, c)
	if len(b.nic.running()) != 0 || b.process.running()[f.Workload] != 2 {
		t.Errorf("after the promotion run %v and %v", b.nic.running(), b.process.running())
	}
	b.nic.refuse = errors.New("no room")
	c = propose(t, b.Store, function("web", api.TargetNIC, "n"))
	if s := await(t, b.Store, c); s[0].State != api.StateError || s[0].Reason != "no room" {
		t.Errorf("a refused candidate is %+v", s)
	}
	if err := b.Abandon(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s := await(t, b.Store, c); s[0].State != api.StateReady || s[0].Revision != 2 {
		t.Errorf("after the refusal it is %+v", s)
	}
	if _, err := b.Delete(t.Context(), "default", "web"); err != nil {
		t.Fatal(err)
	}
	if err := b.AwaitEnd(t.Context(), c.Nodes, c.Workload); err != nil || len(b.process.running()) != 0 {
		t.Errorf("process still runs %v (%v)", b.process.running(), err)
	}
}

// A workload that cannot be ended is tried again, then reported, and ended by the next Sync.
func TestStuckRemoval(t *testing.T) {
	b := newBench(t)
	run(t, b.Worker)
	f := deploy(t, b.Store, function("web", api.TargetNIC, "n"))
	b.nic.stuck = 1
	if _, err := b.Delete(t.Context(), "default", "web"); err != nil {
		t.Fatal(err)
	}
	if err := b.AwaitEnd(t.Context(), f.Nodes, f.Workload); err != nil {
		t.Error(err)
	}
	f = deploy(t, b.Store, function("web", api.TargetNIC, "n"))
	b.nic.stuck = 1000
	if _, err := b.Delete(t.Context(), "default", "web"); err != nil {
		t.Fatal(err)
	}
	if err := b.AwaitEnd(t.Context(), f.Nodes, f.Workload); err == nil || !strings.Contains(err.Error(), "from nic: stuck") {
		t.Errorf("what is stuck ends with %v", err)
	}
	b.nic.stuck = 0
	if err := errors.Join(b.Sync(t.Context()), b.AwaitEnd(t.Context(), f.Nodes, f.Workload)); err != nil || len(b.nic.running()) != 0 {
		t.Errorf("nic runs %v (%v)", b.nic.running(), err)
	}
}

// Two nodes of one store each bring themselves into line with what is placed on them.
func TestTwoNodes(t *testing.T) {
	b := newBench(t)
	other, otherNIC, _ := newNode(b.Store, "m")
	run(t, b.Worker)
	run(t, other)
	both := deploy(t, b.Store, function("both", api.TargetNIC, "n", "m"))
	one := deploy(t, b.Store, function("one", api.TargetNIC, "m"))
	if n, m := b.nic.running(), otherNIC.running(); len(n) != 1 || n[both.Workload] != 1 || len(m) != 2 || m[one.Workload] != 1 {
		t.Errorf("node n runs %v, node m %v", n, m)
	}
	otherNIC.refuse = errors.New("no room")
	c := propose(t, b.Store, function("both", api.TargetNIC, "n", "m"))
	if s := await(t, b.Store, c); s[0].State != api.StateReady || s[1].Reason != "no room" {
		t.Errorf("the nodes say %+v", s)
	}
	if err := b.Abandon(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	otherNIC.refuse = nil
	if s := await(t, b.Store, c); s[0].Revision != 1 || s[1].Revision != 1 || b.nic.running()[both.Workload] != 1 {
		t.Errorf("what one node refused, another runs: %+v, %v", s, b.nic.running())
	}
	moved := deploy(t, b.Store, function("both", api.TargetNIC, "n"))
	if err := b.AwaitEnd(t.Context(), []string{"m"}, moved.Workload); err != nil || len(otherNIC.running()) != 1 {
		t.Errorf("node m still runs %v (%v)", otherNIC.running(), err)
	}
	if err := b.Place(t.Context(), []string{"n"}, func(*store.Function) uint64 { return 1 }); err != nil {
		t.Fatal(err)
	}
	if s := await(t, b.Store, &store.Function{Namespace: "default", Name: "one", Workload: one.Workload, Nodes: []string{"n"}}); s[0].State != api.StateReady {
		t.Errorf("placed anew, it is %+v", s)
	}
}

// After a restart, what is placed comes back, a program of several lambdas as one; strays end; and a candidate is ready where it serves
// already.
func TestSync(t *testing.T) {
	b := newBench(t)
	run(t, b.Worker)
	f := deploy(t, b.Store, function("web", api.TargetNIC, "n"))
	pair := []store.Function{function("a", api.TargetNIC, "n"), function("b", api.TargetNIC, "n")}
	pair[0].Fused = &store.Fused{Artifact: "fused@sha256:0", Members: []store.Member{{Name: "m_a"}, {Name: "m_b"}}}
	cs, err := b.ProposeAll(t.Context(), pair)
	if err != nil {
		t.Fatal(err)
	}
	await(t, b.Store, cs[1])
	if err := b.Promote(t.Context(), cs...); err != nil {
		t.Fatal(err)
	}
	again, nic, process := newNode(b.Store, "n")
	nic.revs[77], process.revs[f.Workload] = 1, 1
	if err := again.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, p := nic.running(), process.running(); len(n) != 3 || n[f.Workload] != 1 || len(p) != 0 {
		t.Errorf("nic runs %v, process %v", n, p)
	}
	for _, m := range []*memory{b.nic, nic} {
		if len(m.together) != 1 || len(m.together[0]) != 2 {
			t.Errorf("programs of %v were loaded, want one of two", m.together)
		}
	}
	for _, serves := range []bool{true, false} {
		late, nic, _ := newNode(b.Store, "late")
		c := propose(t, b.Store, function("late", api.TargetNIC, "late"))
		want := api.StateError
		if serves {
			nic.revs[c.Workload], want = c.Revision, api.StateReady
		}
		if err := late.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := await(t, b.Store, c); s[0].State != want || len(nic.running()) > 0 != serves {
			t.Errorf("a candidate that serves (%v) is %+v, and nic runs %v", serves, s, nic.running())
		}
	}
}

// A revision that cannot be deployed is reported with the reason and the remedy.
func TestReasons(t *testing.T) {
	b := newBench(t)
	run(t, b.Worker)
	b.setPlace(backend.Place{Target: api.TargetNIC, Reason: "it needs root"})
	if s := await(t, b.Store, propose(t, b.Store, function("web", api.TargetNIC, "n"))); !strings.Contains(s[0].Reason, "it needs root") {
		t.Errorf("without the target: %+v", s)
	}
	f := &store.Function{Spec: api.Spec{Services: []api.ServiceSpec{{Name: "memcached", Address: "host:11211"}}}}
	if _, err := deployment(f, backend.Place{Target: api.TargetNIC}); err == nil || !strings.Contains(err.Error(), "--service memcached=IP:11211") {
		t.Errorf("a host without an address: %v", err)
	}
	// The NIC cannot reach the host's loopback: such a service is for processes.
	for _, server := range []string{"127.0.0.1:11211", "[::1]:11211"} {
		f.Spec.Services[0].Address = server
		if _, err := deployment(f, backend.Place{Target: api.TargetProcess, Host: netip.MustParseAddr("127.0.0.1")}); err != nil {
			t.Errorf("%s for a process: %v", server, err)
		}
		_, err := deployment(f, backend.Place{Target: api.TargetNIC, Host: netip.MustParseAddr("198.18.0.1")})
		if err == nil || !strings.Contains(err.Error(), "--service memcached=host:11211") {
			t.Errorf("%s for the NIC: %v", server, err)
		}
	}
	p := &store.Placement{Target: api.TargetProcess, Device: "eth9", Function: f}
	if _, err := b.placeOf(p); err == nil || !strings.Contains(err.Error(), "eth9") {
		t.Errorf("a device by itself: %v", err)
	}
}

// A function whose target refuses to bring it back does not go to another target.
func TestSyncDoesNotMove(t *testing.T) {
	b := newBench(t)
	run(t, b.Worker)
	f := deploy(t, b.Store, function("web", api.TargetNIC, "n"))
	b.nic.revs, b.nic.refuse = map[uint32]uint32{}, errors.New("no room")
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := await(t, b.Store, f); s[0].Reason != "no room" || len(b.process.running()) != 0 {
		t.Errorf("it is %+v, and process runs %v", s, b.process.running())
	}
}

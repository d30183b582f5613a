package worker

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// memory is a backend that only remembers.
type memory struct {
	running map[uint32]uint32 // revision by workload
	refuse  error
	migrate error // what a migration says
	begun   int   // preparations that neither swapped nor were dropped
	last    backend.Deployment
	fused   []backend.Fused // what was prepared
}

func newMemory() *memory { return &memory{running: map[uint32]uint32{}} }

func (m *memory) Deploy(_ context.Context, d backend.Deployment) error {
	m.last = d
	if m.refuse != nil {
		return m.refuse
	}
	m.running[d.Workload] = d.Revision
	return nil
}

func (m *memory) Prepare(_ context.Context, d backend.Deployment) (backend.Prepared, error) {
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.begun++
	return prepared{m, []backend.Deployment{d}}, nil
}

func (m *memory) PrepareFused(_ context.Context, f backend.Fused) (backend.Prepared, error) {
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.begun++
	m.fused = append(m.fused, f)
	return prepared{m, f.Serving}, nil
}

func (m *memory) DeployFused(ctx context.Context, f backend.Fused) error {
	return backend.Group{m}.DeployFused(ctx, f)
}

type prepared struct {
	*memory
	list []backend.Deployment
}

func (p prepared) Migrate() error { return p.migrate }

func (p prepared) Swap() {
	p.begun--
	for _, d := range p.list {
		p.running[d.Workload] = d.Revision
	}
}

func (p prepared) Drop() error {
	p.begun--
	return nil
}

func (m *memory) Remove(_ context.Context, workload uint32) error {
	delete(m.running, workload)
	return nil
}

func (m *memory) Status(context.Context) ([]backend.Status, error) {
	var all []backend.Status
	for id, r := range m.running {
		all = append(all, backend.Status{Workload: id, Revision: r, Stats: backend.Stats{Requests: 3, Histogram: [32]uint64{5: 1}}})
	}
	return all, nil
}

func (m *memory) Endpoint(uint32) (netip.AddrPort, bool) { return netip.AddrPort{}, false }

type oneArtifact struct{}

func (oneArtifact) Get(string) (*artifact.Artifact, error) {
	a := &artifact.Artifact{BPF: []byte("bpf"), Native: []byte("native")}
	a.Manifest.Spec.Targets = api.Targets()
	return a, nil
}

func TestGroupIsOneBackend(t *testing.T) {
	ctx := t.Context()
	a, b := newMemory(), newMemory()
	g := backend.Group{a, b}
	if err := g.Deploy(ctx, backend.Deployment{Workload: 1, Revision: 7}); err != nil {
		t.Fatal(err)
	}
	s, err := g.Status(ctx)
	if err != nil || len(s) != 1 || s[0].Revision != 7 || s[0].Stats.Requests != 6 || s[0].Stats.Histogram[5] != 2 {
		t.Errorf("%+v (%v)", s, err)
	}
	b.running[1] = 6
	if s, _ := g.Status(ctx); s[0].Revision != 0 || s[0].Newest != 7 {
		t.Errorf("members serve 7 and 6, and revision %d, newest %d, is reported", s[0].Revision, s[0].Newest)
	}
	delete(b.running, 1)
	if s, _ := g.Status(ctx); len(s) != 1 || s[0].Revision != 0 {
		t.Errorf("a member lacks the workload, and %+v is reported", s)
	}
	if err := g.Remove(ctx, 1); err != nil || len(a.running)+len(b.running) > 0 {
		t.Errorf("still running: %v %v (%v)", a.running, b.running, err)
	}
}

// A fused program serves on all interfaces of a node, or on none.
func TestGroupDeploysFusedToAllOrNone(t *testing.T) {
	a, b := newMemory(), newMemory()
	f := backend.Fused{Serving: []backend.Deployment{{Workload: 1, Revision: 1}, {Workload: 2, Revision: 5}}}
	if err := (backend.Group{a, b}).DeployFused(t.Context(), f); err != nil || a.running[2] != 5 || b.running[1] != 1 {
		t.Errorf("running %v and %v (%v)", a.running, b.running, err)
	}
	no := errors.New("no room")
	b.refuse = no
	f.Serving[0].Revision = 2
	if err := (backend.Group{a, b}).DeployFused(t.Context(), f); !errors.Is(err, no) || a.running[1] != 1 || a.begun != 0 {
		t.Errorf("running %v, %d begun (%v)", a.running, a.begun, err)
	}
}

// When one interface refuses a revision, the one before serves on all of them, and never stopped.
func TestGroupDeploysToAllOrNone(t *testing.T) {
	no := errors.New("no room")
	for name, refuse := range map[string]func(*memory){
		"load": func(m *memory) { m.refuse = no }, "migration": func(m *memory) { m.migrate = no },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			a, b := newMemory(), newMemory()
			w := New("n", oneArtifact{}, backend.Place{Target: api.TargetNIC, Backend: backend.Group{a, b}})
			f := store.Function{Name: "web", Workload: 1, Revision: 1, Spec: api.Spec{Targets: []api.Target{api.TargetNIC}}}
			if err := w.Apply(ctx, &f); err != nil {
				t.Fatal(err)
			}
			refuse(b)
			f.Revision = 2
			if err := w.Apply(ctx, &f); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no room") {
				t.Fatalf("apply says %v", err)
			}
			if a.running[1] != 1 || b.running[1] != 1 {
				t.Errorf("revisions %d and %d serve, want 1 on both", a.running[1], b.running[1])
			}
			if a.begun != 0 || b.begun != 0 {
				t.Errorf("%d and %d preparations were left", a.begun, b.begun)
			}
		})
	}
}

func TestUnavailableTargetSaysWhy(t *testing.T) {
	process := newMemory()
	w := New("n", oneArtifact{},
		backend.Place{Target: api.TargetNIC, Reason: "it needs root"}, backend.Place{Target: api.TargetProcess, Backend: process})
	f := &store.Function{Name: "web", Workload: 1, Revision: 1, Spec: api.Spec{Targets: []api.Target{api.TargetNIC, api.TargetProcess}}}
	if err := w.Apply(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if f.Target != api.TargetProcess || len(f.Refused) != 1 || !strings.Contains(f.Refused[0].Reason, "it needs root") {
		t.Errorf("%+v", f)
	}
	f.Spec.Targets = []api.Target{api.TargetNIC}
	if err := w.Apply(t.Context(), f); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it needs root") {
		t.Errorf("apply says %v", err)
	}
}

func TestServiceOnAHostWithoutAddress(t *testing.T) {
	w := New("n", oneArtifact{}, backend.Place{Target: api.TargetNIC, Backend: newMemory()})
	f := &store.Function{Name: "kv", Workload: 1, Revision: 1, Spec: api.Spec{
		Targets: []api.Target{api.TargetNIC}, Services: []api.ServiceSpec{{Name: "memcached", Address: "host:11211"}},
	}}
	if err := w.Apply(t.Context(), f); err == nil || !strings.Contains(err.Error(), "--service memcached=IP:11211") {
		t.Errorf("apply says %v", err)
	}
}

// The NIC has no way to the host's loopback: such a service is for processes.
func TestServiceOnTheLoopback(t *testing.T) {
	nic, process := newMemory(), newMemory()
	w := New("n", oneArtifact{},
		backend.Place{Target: api.TargetNIC, Backend: nic, Host: netip.MustParseAddr("198.18.0.1")},
		backend.Place{Target: api.TargetProcess, Backend: process, Host: netip.MustParseAddr("127.0.0.1")})
	for _, server := range []string{"127.0.0.1:11211", "[::1]:11211"} {
		f := &store.Function{Name: "kv", Workload: 1, Revision: 1, Spec: api.Spec{
			Targets: []api.Target{api.TargetNIC, api.TargetProcess}, Services: []api.ServiceSpec{{Name: "memcached", Address: server}},
		}}
		err := w.Apply(t.Context(), f)
		if err != nil || f.Target != api.TargetProcess || !strings.Contains(f.Refused[0].Reason, "--service memcached=host:11211") {
			t.Errorf("%s: %+v, %v", server, f, err)
		}
	}
}

// What is recorded on a target that is not available, and lists no other, fails with that reason.
func TestKeepWithoutTheOnlyTarget(t *testing.T) {
	w := New("n", oneArtifact{}, backend.Place{Target: api.TargetNIC, Reason: "it needs root"})
	f := &store.Function{
		Name: "web", Workload: 1, Revision: 1, Target: api.TargetNIC, Spec: api.Spec{Targets: []api.Target{api.TargetNIC}},
	}
	if err := w.Keep(t.Context(), f); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "it needs root") || strings.Contains(err.Error(), "%!") {
		t.Errorf("keep says %v", err)
	}
}

// Another target in its list does not tempt a function away from one that is there and refuses it.
func TestKeepDoesNotMove(t *testing.T) {
	nic, process := newMemory(), newMemory()
	nic.refuse = errors.New("no room")
	w := New("n", oneArtifact{}, backend.Place{Target: api.TargetNIC, Backend: nic}, backend.Place{Target: api.TargetProcess, Backend: process})
	f := &store.Function{
		Name: "web", Workload: 1, Revision: 1, Target: api.TargetNIC,
		Spec: api.Spec{Targets: []api.Target{api.TargetNIC, api.TargetProcess}},
	}
	if err := w.Keep(t.Context(), f); !errors.Is(err, ErrRefused) || len(process.running) != 0 || f.Target != api.TargetNIC {
		t.Errorf("keep says %v, and process runs %v", err, process.running)
	}
}

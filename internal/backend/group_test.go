package backend

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"testing"
)

// memory is a backend that only remembers.
type memory struct {
	running map[uint32]uint32 // revision by workload
	refuse  error
	migrate error // that a migration returns
	begun   int   // preparations that were neither swapped nor dropped
	last    Deployment
	fused   []Fused // what was prepared
}

func newMemory() *memory { return &memory{running: map[uint32]uint32{}} }

func (m *memory) Deploy(_ context.Context, d Deployment) error {
	m.last = d
	if m.refuse != nil {
		return m.refuse
	}
	m.running[d.Workload] = d.Revision
	return nil
}

func (m *memory) Prepare(_ context.Context, d Deployment) (Prepared, error) {
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.begun++
	return prepared{m, []Deployment{d}}, nil
}

func (m *memory) PrepareFused(_ context.Context, f Fused) (Prepared, error) {
	if m.refuse != nil {
		return nil, m.refuse
	}
	m.begun++
	m.fused = append(m.fused, f)
	return prepared{m, f.Serving}, nil
}

func (m *memory) DeployFused(ctx context.Context, f Fused) error {
	return Group{m}.DeployFused(ctx, f)
}

type prepared struct {
	*memory
	list []Deployment
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

func (m *memory) Status(context.Context) ([]Status, error) {
	var all []Status
	for id, r := range m.running {
		all = append(all, Status{Workload: id, Revision: r, Stats: Stats{Requests: 3, Histogram: [32]uint64{5: 1}}})
	}
	return all, nil
}

func (m *memory) Endpoint(uint32) (netip.AddrPort, bool) { return netip.AddrPort{}, false }

func TestGroupIsOneBackend(t *testing.T) {
	ctx := t.Context()
	a, b := newMemory(), newMemory()
	g := Group{a, b}
	if err := g.Deploy(ctx, Deployment{Workload: 1, Revision: 7}); err != nil {
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
	f := Fused{Serving: []Deployment{{Workload: 1, Revision: 1}, {Workload: 2, Revision: 5}}}
	if err := (Group{a, b}).DeployFused(t.Context(), f); err != nil || a.running[2] != 5 || b.running[1] != 1 {
		t.Errorf("running %v and %v (%v)", a.running, b.running, err)
	}
	no := errors.New("no room")
	b.refuse = no
	f.Serving[0].Revision = 2
	if err := (Group{a, b}).DeployFused(t.Context(), f); !errors.Is(err, no) || a.running[1] != 1 || a.begun != 0 {
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
			g := Group{a, b}
			if err := g.Deploy(ctx, Deployment{Workload: 1, Revision: 1}); err != nil {
				t.Fatal(err)
			}
			refuse(b)
			if err := g.Deploy(ctx, Deployment{Workload: 1, Revision: 2}); !errors.Is(err, no) {
				t.Fatalf("deploy says %v", err)
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

// accountant is a backend that counts for namespaces.
type accountant struct {
	*memory
	accounts map[uint32]Stats
	err      error
}

func (a accountant) Accounts(context.Context) (map[uint32]Stats, error) { return a.accounts, a.err }

// Each NIC counts by itself. One that counts nothing now is left out, and where none counts, there are no sums.
func TestGroupAccounts(t *testing.T) {
	one := accountant{memory: newMemory(), accounts: map[uint32]Stats{1: {Requests: 3, SampledNS: 5}, 2: {Drops: 1}}}
	two := accountant{memory: newMemory(), accounts: map[uint32]Stats{1: {Requests: 4, FaultsBy: [8]uint64{1: 2}}, 3: {Late: 7}}}
	none := accountant{memory: newMemory()}
	want := map[uint32]Stats{1: {Requests: 7, SampledNS: 5, FaultsBy: [8]uint64{1: 2}}, 2: {Drops: 1}, 3: {Late: 7}}
	for range 2 { // the sums are not kept
		if got, err := (Group{one, none, two}).Accounts(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v (%v), want %+v", got, err, want)
		}
	}
	for _, g := range []Group{{none, none}, {newMemory()}} {
		if got, err := g.Accounts(t.Context()); got != nil || err != nil {
			t.Errorf("%+v (%v), want none", got, err)
		}
	}
	none.err = errors.New("no such map")
	if _, err := (Group{one, none}).Accounts(t.Context()); !errors.Is(err, none.err) {
		t.Errorf("got %v", err)
	}
}

package manager

import (
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/worker"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// A function serves on one target of all nodes, and a revision that any node refuses is wanted on none.
func TestSeveralNodes(t *testing.T) {
	dir := shortdir.New(t)
	n := openNode(t, dir, nil)
	nic, process := &fakeBackend{path: filepath.Join(dir, "nic2")}, &fakeBackend{path: filepath.Join(dir, "process2")}
	other, _ := follow(t, worker.Config{Node: "other", Store: n.Store, Artifacts: fakeArtifacts{}, Places: []backend.Place{
		{Target: api.TargetNIC, Backend: nic, Host: netip.MustParseAddr("192.0.2.254")},
		{Target: api.TargetProcess, Backend: process, Host: netip.MustParseAddr("127.0.0.1")},
	}})
	if err := other.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Nodes = []string{"test", "other"}
	f := mustDeploy(t, n, Request{Name: "web"})
	if n.nic.load()[f.Workload].Revision != 1 || nic.load()[f.Workload].Revision != 1 {
		t.Errorf("the NICs run %v and %v", n.nic.load(), nic.load())
	}
	no := func(backend.Deployment) error { return errors.New("no room") }
	nic.refuse = no
	_, err := n.Deploy(t.Context(), Request{Name: "web", Image: image("1")})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "node other: no room") {
		t.Errorf("what one node refuses: %v", err)
	}
	if n.nic.load()[f.Workload].Revision != 1 || nic.load()[f.Workload].Revision != 1 {
		t.Errorf("after that the NICs run %v and %v", n.nic.load(), nic.load())
	}
	fresh := mustDeploy(t, n, Request{Name: "fresh"})
	n.answered(t)
	if fresh.Target != api.TargetProcess || len(n.nic.load()) != 1 || len(n.process.load()) != 1 || len(process.load()) != 1 {
		t.Errorf("it is on %s; this node runs %v and %v, the other %v", fresh.Target, n.nic.load(), n.process.load(), process.load())
	}
	if err := nic.save(nil); err != nil {
		t.Fatal(err)
	}
	if err := other.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := n.Describe(t.Context(), "", "web")
	if err != nil || d.State != api.StateError || d.Reason != "node other: no room" {
		t.Errorf("what another node cannot bring back is %+v (%v)", d, err)
	}
	for _, name := range []string{"web", "fresh"} {
		if err := n.Remove(t.Context(), "", name); err != nil {
			t.Error(err)
		}
	}
	if left := len(n.nic.load()) + len(n.process.load()) + len(nic.load()) + len(process.load()); left != 0 {
		t.Errorf("%d workloads are left", left)
	}
}

// Running functions go on where the store is of an earlier version, which placed nothing, and where the node has a new name.
func TestRecoverPlacesWhatRuns(t *testing.T) {
	dir := shortdir.New(t)
	st := openStore(t, dir, nil)
	spec := api.Spec{Name: "web"}.Default()
	c, err := st.Propose(t.Context(), store.Function{
		Namespace: api.DefaultNamespace, Name: "web", Artifact: image("0"), Spec: spec, Target: api.TargetNIC,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Promote(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	nic := &fakeBackend{path: filepath.Join(dir, "nic")}
	if err := nic.Deploy(t.Context(), backend.Deployment{Workload: c.Workload, Revision: c.Revision}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"test", "renamed"} {
		w := worker.New(worker.Config{Node: name, Store: st, Artifacts: fakeArtifacts{}, Places: []backend.Place{{Target: api.TargetNIC, Backend: nic}}})
		m := New(Config{Store: st, Node: w, Nodes: []string{name}, Artifacts: fakeArtifacts{}})
		if err := m.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		f, err := m.Describe(t.Context(), "", "web")
		if err != nil || f.State != api.StateReady || nic.deploys != 1 {
			t.Errorf("on node %s it is %+v (%v) after %d deploys", name, f, err, nic.deploys)
		}
		if left, _, err := st.Assignments(t.Context(), name); err != nil || len(left) != 1 || !left[0].Answered() {
			t.Errorf("on node %s are placed %+v (%v)", name, left, err)
		}
	}
	// A deploy that was interrupted before that is still completed, as its candidate serves.
	c.Nodes = []string{"renamed"}
	if c, err = st.Propose(t.Context(), *c); err != nil {
		t.Fatal(err)
	}
	if err := nic.Deploy(t.Context(), backend.Deployment{Workload: c.Workload, Revision: c.Revision}); err != nil {
		t.Fatal(err)
	}
	w := worker.New(worker.Config{Node: "again", Store: st, Artifacts: fakeArtifacts{}, Places: []backend.Place{{Target: api.TargetNIC, Backend: nic}}})
	m := New(Config{Store: st, Node: w, Nodes: []string{"again"}, Artifacts: fakeArtifacts{}})
	if err := m.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f, err := m.Describe(t.Context(), "", "web"); err != nil || f.Revision != 2 || f.State != api.StateReady {
		t.Errorf("what was cut short before is %+v (%v)", f, err)
	}
	if left, _, err := st.Assignments(t.Context(), "test"); err != nil || len(left) != 0 {
		t.Errorf("on the node's old name are placed %+v (%v)", left, err)
	}
}

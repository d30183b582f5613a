package manager

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// second are counters of a function that serves, in which so many of 100 requests failed.
func second(f *api.Function, faults uint64) api.FunctionStats {
	return api.FunctionStats{
		Name: f.Name, Namespace: f.Namespace, Workload: f.Workload, Revision: f.Revision, Target: f.Target,
		Stats: api.Stats{Requests: 100, Faults: faults, FaultsBy: api.FaultsBy{api.FaultTime: faults}},
	}
}

func mustTakeOut(t *testing.T, n *node, s api.FunctionStats) *api.Function {
	t.Helper()
	if err := n.TakeOut(t.Context(), s, time.Second); err != nil {
		t.Error(err)
	}
	f, err := n.Describe(t.Context(), s.Namespace, s.Name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Image 7 has a breaker at half of the requests. Image 0 has none.
func TestTakeOut(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	web := mustDeploy(t, n, Request{Name: "web", Image: image("7")})
	if f := mustTakeOut(t, n, second(web, 49)); f.Target != api.TargetNIC || f.Revision != 1 {
		t.Errorf("with fewer faults than it may have: %+v", f)
	}
	old := second(web, 90)
	old.Revision = 7
	if f := mustTakeOut(t, n, old); f.Target != api.TargetNIC {
		t.Errorf("for another revision's faults: %+v", f)
	}
	f := mustTakeOut(t, n, second(web, 50))
	if f.Target != api.TargetProcess || f.State != api.StateReady || len(f.Refused) != 1 || f.Refused[0].Target != api.TargetNIC ||
		!strings.Contains(f.Refused[0].Reason, "taken out: 50 runs of 100 requests failed: 50 time") {
		t.Errorf("with as many faults: %+v", f)
	}
	if len(n.nic.load()) > 0 || len(n.process.load()) != 1 {
		t.Errorf("the NIC runs %v, and processes %v", n.nic.load(), n.process.load())
	}
	if g := mustTakeOut(t, n, second(f, 100)); g.Target != api.TargetProcess || g.Revision != f.Revision {
		t.Errorf("at its last target: %+v", g)
	}
	if f := mustDeploy(t, n, Request{Name: "web", Image: image("7")}); f.Target != api.TargetNIC {
		t.Errorf("deployed again: %+v", f)
	}
	if err := n.TakeOut(t.Context(), second(mustDeploy(t, n, Request{Name: "web", Image: image("7")}), 100), 3*time.Second); err != nil {
		t.Error(err)
	}
	if f, err := n.Describe(t.Context(), "", "web"); err != nil || f.Target != api.TargetNIC {
		t.Errorf("with too few requests in three seconds: %+v (%v)", f, err)
	}
	if f := mustDeploy(t, n, Request{Name: "web", Image: image("7"), Targets: []api.Target{api.TargetNIC}}); mustTakeOut(t, n, second(f, 100)).Target != api.TargetNIC {
		t.Error("taken out of the only target that the deploy allows")
	}
	plain := mustDeploy(t, n, Request{Name: "plain"})
	if f := mustTakeOut(t, n, second(plain, 100)); f.Target != api.TargetNIC {
		t.Errorf("without a breaker: %+v", f)
	}
}

// Where the next target does not take it, a function goes on as it was, and is not moved again and again.
func TestTakeOutRefused(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	web := mustDeploy(t, n, Request{Name: "web", Image: image("7")})
	tries := 0
	n.process.refuse = func(backend.Deployment) error {
		tries++
		return errors.New("no memory")
	}
	if err := n.TakeOut(t.Context(), second(web, 100), time.Second); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no memory") {
		t.Errorf("the next target refuses: %v", err)
	}
	mustTakeOut(t, n, second(web, 100))
	f, err := n.Describe(t.Context(), "", "web")
	if err != nil || f.Target != api.TargetNIC || f.Revision != web.Revision || f.State != api.StateReady || tries != 1 {
		t.Errorf("after %d tries: %+v (%v)", tries, f, err)
	}
}

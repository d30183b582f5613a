package manager

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func mustFuse(t *testing.T, n *node, rs ...Request) []api.Function {
	t.Helper()
	list, err := n.DeployFused(t.Context(), rs)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func wantWith(t *testing.T, n *node, name string, with ...string) {
	t.Helper()
	f, err := n.Describe(t.Context(), "", name)
	if err != nil {
		t.Fatal(err)
	}
	if f.State != api.StateReady || f.Fused == nil || !slices.Equal(f.Fused.With, with) {
		t.Errorf("%s is %s and fused: %+v, want with %v", name, f.State, f.Fused, with)
	}
}

// Functions of one program are functions: each has its workload, revisions and target, is removed by itself, and names the others.
func TestFused(t *testing.T) {
	dir := shortdir.New(t)
	n := openNode(t, dir, nil)
	before := mustDeploy(t, n, Request{Name: "a", Image: image("0"), Targets: []api.Target{api.TargetProcess}})
	list := mustFuse(t, n, Request{Name: "a", Image: image("0")}, Request{Name: "b", Image: image("1")}, Request{Name: "c", Image: image("2")})
	if len(list) != 3 || list[0].Workload != before.Workload || list[0].Revision != 2 || list[1].Revision != 1 || list[2].Image != image("2") {
		t.Fatalf("%+v", list)
	}
	wantWith(t, n, "a", "b", "c")
	if program := n.nic.fused[0]; len(program.Members) != 3 || program.Members[1] != (backend.FusedMember{Name: "m_1", Workload: list[1].Workload}) {
		t.Errorf("members %+v", program.Members)
	}
	if len(n.process.load()) != 0 {
		t.Error("the process runs on")
	}

	if f := mustDeploy(t, n, Request{Name: "b", Image: image("3")}); f.Fused != nil || f.Revision != 2 {
		t.Errorf("deployed by itself: %+v", f)
	}
	wantWith(t, n, "a", "c")
	if f := mustDeploy(t, n, Request{Name: "c", Image: image("2"), Targets: []api.Target{api.TargetProcess}}); f.Fused != nil {
		t.Errorf("on another target: %+v", f)
	}
	wantWith(t, n, "a")
	mustFuse(t, n, Request{Name: "a", Image: image("0")}, Request{Name: "b", Image: image("1")})
	if err := n.Remove(t.Context(), "", "b"); err != nil {
		t.Fatal(err)
	}
	wantWith(t, n, "a")
}

// After a reboot, a program's members that are still wanted come back as one program, under the same numbers.
func TestFusedAfterReboot(t *testing.T) {
	dir := shortdir.New(t)
	n := openNode(t, dir, nil)
	list := mustFuse(t, n, Request{Name: "a", Image: image("0")}, Request{Name: "b", Image: image("1")}, Request{Name: "c", Image: image("2")})
	if err := errors.Join(n.Remove(t.Context(), "", "b"), n.nic.save(map[uint32]backend.Status{}), n.Recover(t.Context())); err != nil {
		t.Fatal(err)
	}
	wantWith(t, n, "a", "c")
	if len(n.nic.fused) != 2 {
		t.Fatalf("%d programs were loaded, want one and one again", len(n.nic.fused))
	}
	again := n.nic.fused[1]
	if len(again.Members) != 3 || len(again.Serving) != 2 || again.Serving[1].Workload != list[2].Workload || again.Serving[1].Revision != 1 {
		t.Errorf("%+v", again)
	}
}

func TestFusedRefused(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	a := Request{Name: "a", Image: image("0")}
	for what, c := range map[string]struct {
		with Request
		want string
	}{
		"twice":      {a, "named twice"},
		"process":    {Request{Name: "p", Image: image("0"), Targets: []api.Target{api.TargetProcess}}, "runs on target nic"},
		"migrated":   {Request{Name: "m", Image: image("c")}, "LAMBDA_KEPT"},
		"no image":   {Request{Name: "f", Image: image("f")}, "lambdanic build"},
		"a program":  {Request{Name: "x", Image: image("9")}, "a program of several lambdas"},
		"no request": {Request{}, "not an image"},
	} {
		if _, err := n.DeployFused(t.Context(), []Request{a, c.with}); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := n.DeployFused(t.Context(), nil); !errors.Is(err, ErrInvalid) {
		t.Errorf("nothing: %v", err)
	}
	// A program that the NIC refuses leaves everything as it was.
	mustDeploy(t, n, a)
	n.nic.refuse = func(backend.Deployment) error { return errors.New("no room") }
	_, err := n.DeployFused(t.Context(), []Request{a, {Name: "b", Image: image("1")}})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "no room") {
		t.Errorf("refused: %v", err)
	}
	functions, err := n.List(t.Context(), "")
	if err != nil || len(functions) != 1 || functions[0].Revision != 1 || functions[0].State != api.StateReady {
		t.Errorf("%+v (%v)", functions, err)
	}
	// Each is told which of its own revisions that was.
	onProcess := func(name string, times int) {
		for range times {
			mustDeploy(t, n, Request{Name: name, Targets: []api.Target{api.TargetProcess}})
		}
	}
	onProcess("p", 1)
	onProcess("q", 2)
	if _, err := n.DeployFused(t.Context(), []Request{{Name: "p", Image: image("0")}, {Name: "q", Image: image("0")}}); !errors.Is(err, ErrRefused) {
		t.Errorf("refused: %v", err)
	}
	for name, want := range map[string]string{"p": "revision 2 was refused", "q": "revision 3 was refused"} {
		if f, err := n.Describe(t.Context(), "", name); err != nil || !strings.Contains(f.Reason, want) {
			t.Errorf("%s is %+v (%v), want %q", name, f, err, want)
		}
	}
	if c, err := n.Store.Candidates(t.Context()); err != nil || len(c) != 0 {
		t.Errorf("candidates %+v (%v)", c, err)
	}
	// State does not move between targets.
	n.nic.refuse = nil
	kept := Request{Name: "kept", Image: image("a"), Targets: []api.Target{api.TargetProcess}}
	mustDeploy(t, n, kept)
	kept.Targets = nil
	if _, err := n.DeployFused(t.Context(), []Request{a, kept}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "--target nic") {
		t.Errorf("state on another target: %v", err)
	}
}

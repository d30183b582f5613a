package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/worker"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func mustDeploy(t *testing.T, n *node, r Request) *api.Function {
	t.Helper()
	if r.Image == "" {
		r.Image = image("0")
	}
	f, err := n.Deploy(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDeployUsesFirstTargetThatWorks(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	n.nic.refuse = func(backend.Deployment) error { return errors.New("does not verify: line 7") }
	f := mustDeploy(t, n, Request{Name: "web"})
	if f.Target != api.TargetProcess || f.State != api.StateReady {
		t.Fatalf("got %+v, want it ready on process", f)
	}
	if len(f.Refused) != 1 || f.Refused[0].Target != api.TargetNIC || !strings.Contains(f.Refused[0].Reason, "line 7") {
		t.Errorf("refused: %+v", f.Refused)
	}
	n.nic.refuse = nil
	if f = mustDeploy(t, n, Request{Name: "web"}); f.Target != api.TargetNIC || f.Revision != 2 || len(f.Refused) != 0 {
		t.Fatalf("got %+v, want revision 2 on nic, which takes it now", f)
	}
	if len(n.process.load()) != 0 {
		t.Errorf("process still runs %v after the function moved", n.process.load())
	}
}

// A lambda that the compiler refuses for the NIC is handled like one that the NIC refuses.
func TestDeployOfWhatTheCompilerRefused(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	if f := mustDeploy(t, n, Request{Name: "web", Image: image("d")}); f.Target != api.TargetProcess || len(f.Refused) != 1 ||
		!strings.Contains(f.Refused[0].Reason, "web.c:7: no") || n.nic.deploys != 0 {
		t.Errorf("got %+v after %d deploys to the NIC, want it on process alone, with the compiler's words", f, n.nic.deploys)
	}
	mustDeploy(t, n, Request{Name: "fast"})
	_, err := n.Deploy(t.Context(), Request{Name: "fast", Image: image("d")})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "web.c:7: no") || !strings.Contains(err.Error(), "revision 1 serves on") {
		t.Errorf("a revision that would leave the NIC: %v", err)
	}
	_, err = n.Deploy(t.Context(), Request{Name: "only", Image: image("d"), Targets: []api.Target{api.TargetNIC}})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "web.c:7: no") {
		t.Errorf("for the NIC alone: %v", err)
	}
}

// A revision that takes over state stays on the target with the state, until it is sent away.
func TestDeployStaysWithItsState(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	no := func(backend.Deployment) error { return errors.New("does not verify: line 7") }
	n.nic.refuse = no
	mustDeploy(t, n, Request{Name: "web", Image: image("a")})
	n.nic.refuse = nil
	f := mustDeploy(t, n, Request{Name: "web", Image: image("a")})
	if f.Target != api.TargetProcess || f.Revision != 2 || len(f.Refused) != 1 || !strings.Contains(f.Refused[0].Reason, "--target nic") {
		t.Fatalf("got %+v, want revision 2 where revision 1 served, and the way to nic", f)
	}
	if f = mustDeploy(t, n, Request{Name: "web", Image: image("a"), Targets: []api.Target{api.TargetNIC}}); f.Target != api.TargetNIC {
		t.Fatalf("got %+v, want it on nic", f)
	}
	if f = mustDeploy(t, n, Request{Name: "web", Image: image("a"), Targets: []api.Target{api.TargetProcess}}); f.Target != api.TargetProcess {
		t.Fatalf("got %+v, want it on process", f)
	}
	if f = mustDeploy(t, n, Request{Name: "web"}); f.Target != api.TargetNIC {
		t.Fatalf("got %+v, want what takes over nothing on nic", f)
	}
}

func TestDeployOverrides(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	var got backend.Deployment
	n.process.refuse = func(d backend.Deployment) error { got = d; return nil }
	mustDeploy(t, n, Request{
		Name: "web-process", Targets: []api.Target{api.TargetProcess}, Services: map[string]string{"memcached": "192.0.2.9:1"},
	})
	if got.Name != "web-process" || got.Spec.Entry != "web" || got.Services[0].Servers[0].String() != "192.0.2.9:1" {
		t.Errorf("the backend was given %+v", got)
	}
	mustDeploy(t, n, Request{Name: "web-process", Targets: []api.Target{api.TargetProcess}})
	if got.Services[0].Servers[0].String() != "127.0.0.1:11211" {
		t.Errorf("host became %v, want the place's own address of the host", got.Services[0].Servers)
	}
}

func TestRefusedDeployLeavesRunningRevision(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	first := mustDeploy(t, n, Request{Name: "web"})
	refuse := func(backend.Deployment) error { return errors.New("does not verify") }
	n.nic.refuse, n.process.refuse = refuse, refuse
	_, err := n.Deploy(t.Context(), Request{Name: "web", Image: image("1")})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "nic: does not verify") {
		t.Fatalf("deploy says %v", err)
	}
	f, err := n.Describe(t.Context(), "", "web")
	if err != nil || f.Revision != first.Revision || f.Image != first.Image || f.State != api.StateReady {
		t.Fatalf("afterwards %+v (%v), want revision %d ready", f, err, first.Revision)
	}
	if !strings.Contains(f.Reason, "revision 2 was refused: nic: does not verify") {
		t.Errorf("reason %q does not tell of the refused deploy", f.Reason)
	}
	// The refusal is not forgotten where taking the candidate back needs mending, which records what it mended.
	asked, failed := false, false
	n.nic.event = func(_ context.Context, what string) error {
		if asked = asked || what == "before deploy"; !asked || what != "status" || failed {
			return nil
		}
		failed = true
		return errors.New("lost")
	}
	if _, err := n.Deploy(t.Context(), Request{Name: "web", Image: image("1")}); !errors.Is(err, ErrRefused) || !failed {
		t.Fatalf("deploy says %v, failed: %v", err, failed)
	}
	if f, err = n.Describe(t.Context(), "", "web"); err != nil || f.State != api.StateReady || !strings.Contains(f.Reason, "revision 3 was refused") {
		t.Errorf("after mending %+v (%v)", f, err)
	}
}

// A revision that the running one's target refuses does not go elsewhere, where it would start without the kept state.
func TestRefusedRevisionDoesNotMove(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	first := mustDeploy(t, n, Request{Name: "web"})
	n.nic.refuse = func(backend.Deployment) error { return errors.New("kept object changed its type") }
	_, err := n.Deploy(t.Context(), Request{Name: "web", Image: image("1")})
	if !errors.Is(err, ErrRefused) {
		t.Fatalf("deploy says %v", err)
	}
	for _, part := range []string{"nic: kept object changed its type", "revision 1 serves on", "--target process", "kept state does not move"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("deploy says %q, without %q", err, part)
		}
	}
	if n.process.deploys != 0 || n.nic.load()[first.Workload].Revision != 1 {
		t.Errorf("nic runs %v, process %v, want revision 1 on nic", n.nic.load(), n.process.load())
	}
	f, err := n.Describe(t.Context(), "", "web")
	if err != nil || f.Target != api.TargetNIC || f.State != api.StateReady {
		t.Errorf("afterwards %+v (%v)", f, err)
	}
	f = mustDeploy(t, n, Request{Name: "web", Image: image("1"), Targets: []api.Target{api.TargetProcess}})
	if f.Target != api.TargetProcess || len(n.nic.load()) != 0 {
		t.Errorf("moved on purpose, it is %+v, and nic runs %v", f, n.nic.load())
	}
}

// What a fallback serves stays there when the daemon comes back, though its first target would take it now.
func TestRecoverKeepsTheTarget(t *testing.T) {
	dir := shortdir.New(t)
	n := openNode(t, dir, nil)
	n.nic.refuse = func(backend.Deployment) error { return errors.New("no") }
	f := mustDeploy(t, n, Request{Name: "web"})
	n.nic.refuse = nil
	for _, lost := range []bool{false, true} {
		if lost {
			_ = n.process.Remove(t.Context(), f.Workload) // as after a reboot
		}
		if err := n.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := n.Describe(t.Context(), "", "web")
		if err != nil || got.Target != api.TargetProcess || got.State != api.StateReady || len(got.Refused) != 1 {
			t.Errorf("lost %v: recovered as %+v (%v), want it ready on process", lost, got, err)
		}
	}
	if n.nic.deploys != 0 || n.process.deploys != 2 {
		t.Errorf("%d deploys on nic and %d on process, want 0 and 2", n.nic.deploys, n.process.deploys)
	}
	st := n.Store
	var log strings.Builder
	n.stop()
	w, _ := follow(t, worker.Config{Node: "test", Store: st, Artifacts: fakeArtifacts{}, Places: []backend.Place{
		{Target: api.TargetNIC, Backend: n.nic, Host: netip.MustParseAddr("192.0.2.254")},
		{Target: api.TargetProcess, Reason: "lambda-host is missing"},
	}})
	n.Manager = New(Config{
		Store: st, Artifacts: fakeArtifacts{}, Nodes: n.Nodes, Log: slog.New(slog.NewTextHandler(&log, nil)), Node: w,
	})
	if err := n.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored, err := st.Get(t.Context(), f.Namespace, f.Name)
	if err != nil || stored.Target != api.TargetNIC || n.nic.load()[f.Workload].Revision != f.Revision {
		t.Errorf("without process it is %+v (%v), want it on nic", stored, err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "lambda-host is missing") {
		t.Errorf("the log says %q", log.String())
	}
}

func TestRefusedFirstDeployLeavesNothing(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	n.nic.refuse = func(backend.Deployment) error { return errors.New("no") }
	n.process.refuse = n.nic.refuse
	if _, err := n.Deploy(t.Context(), Request{Name: "web", Image: image("0")}); err == nil {
		t.Fatal("deployed")
	}
	n.nic.refuse = nil
	if f := mustDeploy(t, n, Request{Name: "other"}); f.Workload != 1<<16|1 {
		t.Errorf("workload %#x: the refused deploy kept its index", f.Workload)
	}
}

func TestCallerWhoLeavesDoesNotLeaveACandidate(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	n.nic.refuse = func(backend.Deployment) error { cancel(); return ctx.Err() }
	if _, err := n.Deploy(ctx, Request{Name: "web", Image: image("0")}); !errors.Is(err, context.Canceled) {
		t.Fatalf("deploy says %v", err)
	}
	if c, err := n.Store.Candidates(t.Context()); err != nil || len(c) != 0 {
		t.Errorf("candidates %+v (%v)", c, err)
	}
	if len(n.process.load()) != 0 {
		t.Error("went on to the next target after the caller had left")
	}
}

func TestInvalidRequests(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	for name, r := range map[string]Request{
		"no image":          {Name: "web"},
		"unknown image":     {Name: "web", Image: image("f")},
		"another's image":   {Name: "zzz", Image: "zzz@" + strings.TrimPrefix(image("0"), "web@")},
		"tag for a digest":  {Name: "web", Image: "web:latest"},
		"no name":           {Image: image("0")},
		"name with a slash": {Name: "a/b", Image: image("0")},
		"namespace":         {Name: "web", Namespace: "../x", Image: image("0")},
		"target":            {Name: "web", Image: image("0"), Targets: []api.Target{"gpu"}},
		"target not built":  {Name: "web", Image: image("b"), Targets: []api.Target{api.TargetProcess}},
		"service":           {Name: "web", Image: image("0"), Services: map[string]string{"redis": "192.0.2.1:1"}},
		"service address":   {Name: "web", Image: image("0"), Services: map[string]string{"memcached": "nowhere"}},
	} {
		if _, err := n.Deploy(t.Context(), r); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: deploy says %v", name, err)
		}
	}
	if err := n.Remove(t.Context(), "", "web"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("remove says %v", err)
	}
}

func TestRecoverRebuildsWhatTheNodeLost(t *testing.T) {
	dir := shortdir.New(t)
	n := openNode(t, dir, nil)
	want := mustDeploy(t, n, Request{Name: "web"})
	mustDeploy(t, n, Request{Name: "gone"})
	n.answered(t)
	running := n.nic.load()
	if err := n.nic.save(map[uint32]backend.Status{99: {Workload: 99, Revision: 1}}); err != nil { // as after a reboot, and a stray
		t.Fatal(err)
	}
	n.nic.refuse = func(d backend.Deployment) error {
		if d.Name == "gone" {
			return errors.New("no")
		}
		return nil
	}
	n.process.refuse = n.nic.refuse
	if err := n.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := n.nic.load()
	if now[want.Workload] != running[want.Workload] {
		t.Errorf("runs %+v, want %+v again", now, running[want.Workload])
	}
	if _, ok := now[99]; ok {
		t.Error("a stray workload stayed")
	}
	if f, err := n.Describe(t.Context(), "", "gone"); err != nil || f.State != api.StateError || !strings.Contains(f.Reason, "no") {
		t.Errorf("what cannot be restored is described as %+v (%v)", f, err)
	}
	deploys := n.nic.deploys
	n.nic.refuse, n.process.refuse = nil, nil
	for range 2 {
		if err := n.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n.nic.deploys != deploys+1 {
		t.Errorf("%d more deploys, want only the one that was missing", n.nic.deploys-deploys)
	}
}

// Without disk space no change that needs some begins, and functions can be removed.
func TestWithoutRoom(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	n.Build = func(context.Context, []byte) (*artifact.Artifact, string, error) {
		return &artifact.Artifact{}, "", nil
	}
	mustDeploy(t, n, Request{Name: "web"})
	full := errors.New("not enough")
	n.Room = func() error { return full }
	web := Request{Name: "web", Image: image("0")}
	if _, err := n.Deploy(t.Context(), web); !errors.Is(err, full) {
		t.Errorf("deploy says %v", err)
	}
	if _, err := n.DeployFused(t.Context(), []Request{web}); !errors.Is(err, full) {
		t.Errorf("a fused deploy says %v", err)
	}
	if _, err := n.BuildSource(t.Context(), nil); !errors.Is(err, full) {
		t.Errorf("build says %v", err)
	}
	if f, err := n.Describe(t.Context(), "", "web"); err != nil || f.Revision != 1 || f.State != api.StateReady || n.nic.deploys != 1 {
		t.Errorf("it is %+v (%v) after %d deploys", f, err, n.nic.deploys)
	}
	if err := n.Remove(t.Context(), "", "web"); err != nil {
		t.Errorf("remove says %v", err)
	}
	n.Room = func() error { return nil }
	mustDeploy(t, n, Request{Name: "web"})
}

// A build that fails is the source's fault unless the node is known to be at fault, and the error says which.
func TestWhoseFaultABuildIs(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	for _, c := range []struct {
		err  error
		node bool
	}{
		{compiler.ErrSource, false},
		{sandbox.ErrLimit, false},
		{&sandbox.ExitError{Code: 1}, false},
		{sandbox.ErrUnavailable, true},
		{fmt.Errorf("%w: %w", sandbox.ErrLimit, sandbox.ErrBusy), true},
		{compiler.ErrToolchain, true},
		{&fs.PathError{Op: "write", Path: "blob", Err: unix.EIO}, true},
	} {
		n.Build = func(context.Context, []byte) (*artifact.Artifact, string, error) { return nil, "", c.err }
		n.Fuse = func(context.Context, []*artifact.Artifact) (*artifact.Artifact, error) { return nil, c.err }
		_, err := n.BuildSource(t.Context(), nil)
		_, fused := n.DeployFused(t.Context(), []Request{{Name: "web", Image: image("0")}})
		for _, err := range []error{err, fused} {
			if !errors.Is(err, c.err) || errors.Is(err, ErrBuild) == c.node || strings.Contains(err.Error(), "no fault of the source") != c.node {
				t.Errorf("%v is told as %v", c.err, err)
			}
		}
	}
}

package manager

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// kills names the changes that a child makes, each after a first deploy of "web" to nic, and the steps at which it dies.
var kills = map[string][]string{
	"replace": {"deploy: proposed", "deploy: applied", "deploy: promoted", "deploy: retired"},
	"move":    {"deploy: proposed", "deploy: applied", "deploy: promoted", "deploy: retired"},
	"new":     {"deploy: proposed", "deploy: applied", "deploy: promoted", "deploy: retired"},
	"fuse":    {"deploy: proposed", "deploy: applied", "deploy: promoted", "deploy: retired"},
	"refused": {"deploy: proposed", "deploy: refused", "deploy: abandoned"},
	"remove":  {"remove: deleted", "remove: stopped", "remove: freed"},
}

// Whichever step the daemon dies at, the next one finds a state in which every function serves one revision on one target,
// nothing else runs, and everything can be deployed and removed again.
func TestKilledAtEachStep(t *testing.T) {
	if dir := os.Getenv("LAMBDANIC_TEST_KILL_DIR"); dir != "" {
		dieAt(t, dir, os.Getenv("LAMBDANIC_TEST_KILL_CHANGE"), os.Getenv("LAMBDANIC_TEST_KILL_STEP"))
		return
	}
	for change, steps := range kills {
		for _, step := range steps {
			t.Run(change+"/"+strings.ReplaceAll(step, ": ", "-"), func(t *testing.T) {
				dir := shortdir.New(t)
				child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledAtEachStep$")
				child.Env = append(os.Environ(), "LAMBDANIC_TEST_KILL_DIR="+dir, "LAMBDANIC_TEST_KILL_CHANGE="+change,
					"LAMBDANIC_TEST_KILL_STEP="+step, "TMPDIR="+t.TempDir()) // it cannot remove what it makes there
				out, err := child.CombinedOutput()
				var exit *exec.ExitError
				if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("the child did not die at that step: %v\n%s", err, out)
				}
				began := begun(dir)
				checkRecovered(t, openNode(t, dir, nil), change, step, began)
			})
		}
	}
}

// dieAt runs in the child.
func dieAt(t *testing.T, dir, change, step string) {
	armed := false
	n := openNode(t, dir, func(now string) {
		if armed && now == step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	mustDeploy(t, n, Request{Name: "web"})
	armed = true
	second := Request{Name: "web", Image: image("1")}
	switch change {
	case "replace":
		mustDeploy(t, n, second)
	case "move":
		second.Targets = []api.Target{api.TargetProcess}
		mustDeploy(t, n, second)
	case "new":
		second.Name = "other"
		mustDeploy(t, n, second)
	case "fuse":
		_, _ = n.DeployFused(t.Context(), []Request{second, {Name: "other", Image: image("1")}})
	case "refused":
		n.nic.refuse = func(backend.Deployment) error { return errors.New("no") }
		n.process.refuse = n.nic.refuse
		_, _ = n.Deploy(t.Context(), second)
	case "remove":
		_ = n.Remove(t.Context(), "", "web")
	}
}

// begun says for which functions a target began with the candidate before the daemon died: "web" has the first workload, "other" the second.
func begun(dir string) map[string]bool {
	began := make(map[string]bool)
	for _, target := range []string{"nic", "process"} {
		running := (&fakeBackend{path: filepath.Join(dir, target)}).load()
		began["web"] = began["web"] || running[1].Revision == 2
		began["other"] = began["other"] || running[2].Revision == 1
	}
	return began
}

// checkRecovered looks for the old revision where the candidate was proposed and no target had begun with it yet.
func checkRecovered(t *testing.T, n *node, change, step string, began map[string]bool) {
	t.Helper()
	ctx := t.Context()
	functions, err := n.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"web": image("0")}
	applied := func(name string) bool { return step != "deploy: proposed" || began[name] }
	switch change {
	case "remove":
		delete(want, "web")
	case "new":
		if applied("other") {
			want["other"] = image("1")
		}
	case "fuse":
		for _, name := range []string{"web", "other"} {
			if applied(name) {
				want[name] = image("1")
			}
		}
	case "replace", "move":
		if applied("web") {
			want["web"] = image("1")
		}
	}
	running := len(n.nic.load()) + len(n.process.load())
	if len(functions) != len(want) || running != len(want) {
		t.Fatalf("%d functions, %d workloads run, want %d: %+v", len(functions), running, len(want), functions)
	}
	for _, f := range functions {
		if f.State != api.StateReady || f.Image != want[f.Name] {
			t.Errorf("%s is %+v, want %s ready", f.Name, f, want[f.Name])
		}
	}
	if c, err := n.Store.Candidates(ctx); err != nil || len(c) != 0 {
		t.Errorf("candidates %+v (%v)", c, err)
	}
	if d, err := n.Store.Draining(ctx); err != nil || len(d) != 0 {
		t.Errorf("draining %v (%v)", d, err)
	}
	mustDeploy(t, n, Request{Name: "web", Image: image("2")})
	for _, f := range functions {
		if err := n.Remove(ctx, f.Namespace, f.Name); err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
	}
}

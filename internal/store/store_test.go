package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// open starts a store below dir. The socket's path is short, as UNIX wants it.
func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), config(dir))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func config(dir string) Config {
	return Config{DataDir: filepath.Join(dir, "d"), SocketDir: filepath.Join(dir, "s")}
}

func function(name string) Function {
	return Function{Namespace: api.DefaultNamespace, Name: name, Nodes: []string{"n"}, Artifact: name + "@sha256:0", Spec: api.Spec{Name: name}.Default()}
}

// deploy proposes and promotes.
func deploy(ctx context.Context, s *Store, name string) (*Function, error) {
	c, err := s.Propose(ctx, function(name))
	if err != nil {
		return nil, err
	}
	return c, s.Promote(ctx, c)
}

func TestDeployReplaceRemove(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	first, err := deploy(ctx, s, "web")
	if err != nil {
		t.Fatal(err)
	}
	if first.Workload != 1 || first.Revision != 1 {
		t.Fatalf("first deploy got workload %#x revision %d", first.Workload, first.Revision)
	}
	candidate, err := s.Propose(ctx, function("web"))
	if err != nil {
		t.Fatal(err)
	}
	if candidate.Workload != first.Workload || candidate.Revision != 2 {
		t.Fatalf("candidate got workload %#x revision %d", candidate.Workload, candidate.Revision)
	}
	if wanted, err := s.Get(ctx, "default", "web"); err != nil || wanted.Revision != 1 {
		t.Fatalf("with a candidate, %+v (%v) is wanted, not revision 1", wanted, err)
	}
	if err := s.Abandon(ctx, candidate); err != nil {
		t.Fatal(err)
	}
	if err := s.Promote(ctx, candidate); !errors.Is(err, ErrSuperseded) {
		t.Fatalf("promoting an abandoned candidate says %v", err)
	}
	third, err := deploy(ctx, s, "web")
	if err != nil || third.Revision != 3 {
		t.Fatalf("revision %d (%v) after an abandoned one; numbers must not return", third.Revision, err)
	}
	if !third.Created.Equal(first.Created) {
		t.Errorf("created at %v, at first at %v", third.Created, first.Created)
	}
	if _, err := s.Delete(ctx, "default", "web"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(ctx, "default", "web"); !errors.Is(err, ErrNotFound) {
		t.Errorf("second remove says %v", err)
	}
}

func TestIndexReturnsUnderNewGeneration(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	old, err := deploy(ctx, s, "web")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(ctx, "default", "web"); err != nil {
		t.Fatal(err)
	}
	other, err := deploy(ctx, s, "other")
	if err != nil || other.Workload != 2 {
		t.Fatalf("workload %#x (%v) while index 1 drains", other.Workload, err)
	}
	if ids, err := s.Draining(ctx); err != nil || len(ids) != 1 || ids[0] != old.Workload {
		t.Fatalf("draining: %v (%v)", ids, err)
	}
	for range 2 { // the second time must do nothing
		if err := s.Free(ctx, old.Workload); err != nil {
			t.Fatal(err)
		}
	}
	again, err := deploy(ctx, s, "web")
	if err != nil || again.Workload != 1<<16|1 || again.Revision != 1 {
		t.Fatalf("workload %#x revision %d (%v), want 0x10001 and 1", again.Workload, again.Revision, err)
	}
	if err := s.Free(ctx, old.Workload); err != nil {
		t.Fatal(err)
	}
	if next, err := deploy(ctx, s, "third"); err != nil || next.Workload != 3 {
		t.Fatalf("workload %#x (%v): an index in use was given out again", next.Workload, err)
	}
}

func TestAbandonedFirstDeployDrains(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	c, err := s.Propose(ctx, function("web"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Abandon(ctx, c); err != nil {
		t.Fatal(err)
	}
	if ids, err := s.Draining(ctx); err != nil || len(ids) != 1 || ids[0] != c.Workload {
		t.Fatalf("draining: %v (%v)", ids, err)
	}
}

// Whatever is deployed and removed in whatever order by several at once: no two functions share an index, and no ID is
// given out twice.
func TestWorkloadIDsStayUnique(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	var mu sync.Mutex
	seen := map[uint32]string{}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(worker)))
			live := map[string]uint32{}
			for step := range 40 {
				name := fmt.Sprintf("f%d-%d", worker, rng.IntN(6))
				if id, ok := live[name]; ok && rng.IntN(2) == 0 {
					if _, err := s.Delete(ctx, "default", name); err != nil {
						t.Error(err)
					}
					if err := s.Free(ctx, id); err != nil {
						t.Error(err)
					}
					delete(live, name)
					continue
				}
				f, err := deploy(ctx, s, name)
				if err != nil {
					t.Error(err)
					return
				}
				if was, ok := live[name]; ok && was != f.Workload {
					t.Errorf("step %d: %s moved from workload %#x to %#x", step, name, was, f.Workload)
				} else if !ok {
					mu.Lock()
					if by, taken := seen[f.Workload]; taken {
						t.Errorf("step %d: %s got workload %#x, which %s had", step, name, f.Workload, by)
					}
					seen[f.Workload] = name
					mu.Unlock()
				}
				live[name] = f.Workload
			}
		})
	}
	wg.Wait()
	all, err := s.List(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	index := map[uint32]string{}
	for _, f := range all {
		if by, taken := index[f.Workload&maxIndex]; taken {
			t.Errorf("%s and %s share index %d", by, f.Name, f.Workload&maxIndex)
		}
		index[f.Workload&maxIndex] = f.Name
	}
}

func TestListKeepsNamespacesApart(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	for _, ns := range []string{"a", "ab"} {
		f := function("web")
		f.Namespace = ns
		c, err := s.Propose(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Promote(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.List(ctx, "a")
	if err != nil || len(got) != 1 || got[0].Namespace != "a" {
		t.Fatalf("namespace a holds %+v (%v)", got, err)
	}
}

func TestNobodyElseCanReachIt(t *testing.T) {
	dir := shortdir.New(t)
	open(t, dir)
	for name, want := range map[string]os.FileMode{
		"d": 0o700, "s": 0o700, "s/client.sock": 0o600,
	} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, fi.Mode().Perm(), want)
		}
	}
	if sockets := listening(t, os.Getpid()); len(sockets) > 0 {
		t.Errorf("the store listens where everybody can reach it: %v", sockets)
	}
}

// listening returns a process's listening TCP sockets and its abstract UNIX sockets, neither of which has a mode.
func listening(t *testing.T, pid int) []string {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && strings.HasPrefix(link, "socket:[") {
			own[strings.Trim(link, "socket:[]")] = true
		}
	}
	var found []string
	unix, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(unix)) {
		if f := strings.Fields(line); len(f) == 8 && own[f[6]] && strings.HasPrefix(f[7], "@") {
			found = append(found, f[7])
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			const stateListen = "0A"
			if len(f) > 9 && f[3] == stateListen && own[f[9]] {
				found = append(found, f[1])
			}
		}
	}
	return found
}

// A child deploys until it is killed. All that it acknowledged must be there afterwards, and the store must start.
func TestSurvivesKill(t *testing.T) {
	if dir := os.Getenv("LAMBDANIC_TEST_STORE"); dir != "" {
		deployForever(t, dir)
		return
	}
	dir := shortdir.New(t)
	for round := range 2 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSurvivesKill$")
		child.Env = append(os.Environ(), "LAMBDANIC_TEST_STORE="+dir)
		child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := waitForRevision(t, dir, uint32(10*(round+1)))
		_ = child.Process.Kill()
		_ = child.Wait()
		s, err := Open(t.Context(), config(dir))
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Get(t.Context(), "default", "web")
		if err != nil || f.Revision < acknowledged {
			t.Fatalf("after kill -9: %+v (%v), but revision %d was acknowledged", f, err, acknowledged)
		}
		if next, err := deploy(t.Context(), s, "web"); err != nil || next.Revision <= f.Revision || next.Workload != f.Workload {
			t.Fatalf("after kill -9 of revision %d, a deploy gives %+v (%v)", f.Revision, next, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func deployForever(t *testing.T, dir string) {
	s := open(t, dir)
	for {
		f, err := deploy(t.Context(), s, "web")
		if err != nil {
			t.Fatal(err)
		}
		tmp := filepath.Join(dir, "ack.tmp")
		if err := os.WriteFile(tmp, strconv.AppendUint(nil, uint64(f.Revision), 10), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(tmp, filepath.Join(dir, "ack")); err != nil {
			t.Fatal(err)
		}
	}
}

func waitForRevision(t *testing.T, dir string, atLeast uint32) uint32 {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		raw, _ := os.ReadFile(filepath.Join(dir, "ack"))
		if n, _ := strconv.ParseUint(string(raw), 10, 32); uint32(n) >= atLeast {
			return uint32(n)
		}
	}
	t.Fatalf("the child did not reach revision %d", atLeast)
	return 0
}

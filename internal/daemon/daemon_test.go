package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend/nics"
	"github.com/lambdanic/lambdanic/internal/nic"
)

const childEnv = "LAMBDANIC_TEST_DAEMON"

// TestMain runs a daemon where a test asks for one: it is a process of its own, so that it can be killed.
func TestMain(m *testing.M) {
	if raw := os.Getenv(childEnv); raw != "" {
		var cfg Config
		if err := json.Unmarshal([]byte(raw), &cfg); err != nil {
			panic(err)
		}
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
		defer stop()
		readyFD := -1
		if last := os.Args[len(os.Args)-1]; strings.HasPrefix(last, "--"+ReadyFlag) {
			_, number, _ := strings.Cut(last, "=")
			readyFD, _ = strconv.Atoi(number)
		}
		if err := Run(ctx, cfg, readyFD, func(n *api.Node) error { return json.NewEncoder(os.Stdout).Encode(n) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// newInstance returns paths of an instance that is taken down after the test.
func newInstance(t *testing.T, suffix string) Paths {
	t.Helper()
	dir, err := os.MkdirTemp("", "ln")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPaths(fmt.Sprintf("t%d%s", os.Getpid(), suffix), filepath.Join(dir, "d"), filepath.Join(dir, "r"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Down(context.Background(), p, true); err != nil {
			t.Errorf("take down: %v", err)
		}
		_ = os.RemoveAll(dir)
	})
	return p
}

type child struct {
	*exec.Cmd
	node   api.Node
	stderr strings.Builder
}

// up starts a daemon and returns when it serves or has ended, with what it said.
func up(t *testing.T, cfg Config) (*child, error) {
	t.Helper()
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(os.Args[0])}
	c.Env = append(os.Environ(), childEnv+"="+string(raw))
	c.Stderr = &c.stderr
	c.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	if err := json.NewDecoder(out).Decode(&c.node); err != nil {
		_ = c.Wait()
		return nil, errors.New(c.stderr.String())
	}
	return c, nil
}

func (c *child) kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
}

func mustUp(t *testing.T, cfg Config) *child {
	t.Helper()
	c, err := up(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const anyPort = "127.0.0.1:0"

func TestSecondUpNamesTheFirst(t *testing.T) {
	p := newInstance(t, "a")
	first := mustUp(t, Config{Paths: p, Listen: anyPort})
	_, err := up(t, Config{Paths: p, Listen: anyPort})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(first.Process.Pid)) {
		t.Fatalf("a second up says %v, want it to name process %d", err, first.Process.Pid)
	}
	if n, err := NewClient(p).Node(t.Context()); err != nil || n.PID != first.Process.Pid {
		t.Errorf("afterwards the first answers %+v (%v)", n, err)
	}
}

func TestFailedUpLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, cfg := range map[string]Config{
		"port in use":  {Listen: taken.Addr().String()},
		"no interface": {Listen: anyPort, NIC: nics.Options{Interfaces: []string{"lnnope0"}}},
	} {
		cfg.Paths = newInstance(t, "b")
		if _, err := up(t, cfg); err == nil {
			t.Errorf("%s: it is up", name)
		}
		for _, dir := range []string{filepath.Dir(cfg.Data), filepath.Dir(cfg.Run), "/run/netns/lambdanic-" + cfg.Instance, filepath.Join(nic.DefaultPinDir, cfg.Instance),
			filepath.Join(nic.DefaultPinDir, cfg.Instance+":limits")} {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %s remains (%v)", name, dir, err)
			}
		}
	}
}

func TestDownRemovesEverythingWithoutADaemon(t *testing.T) {
	p := newInstance(t, "c")
	c := mustUp(t, Config{Paths: p})
	c.kill()
	if _, err := NewClient(p).Node(t.Context()); !errors.Is(err, ErrDown) {
		t.Errorf("without a daemon, the client says %v", err)
	}
	for range 2 { // the second time there is nothing to do
		if err := Down(t.Context(), p, true); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{p.Data, p.Run} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s remains (%v)", dir, err)
		}
	}
	if ns, err := netns.GetFromName("lambdanic-" + p.Instance); err == nil {
		_ = ns.Close()
		t.Error("the NIC's namespace remains")
	}
}

// An interruption is not reported as a daemon that does not end.
func TestInterruptedDown(t *testing.T) {
	p := newInstance(t, "l")
	mustUp(t, Config{Paths: p})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Down(ctx, p, false); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "does not end") {
		t.Errorf("down says %v", err)
	}
}

// handler tells of each record that is logged.
type handler func(slog.Record)

func (h handler) Enabled(context.Context, slog.Level) bool      { return true }
func (h handler) Handle(_ context.Context, r slog.Record) error { h(r); return nil }
func (h handler) WithAttrs([]slog.Attr) slog.Handler            { return h }
func (h handler) WithGroup(string) slog.Handler                 { return h }

func TestInterruptedUpLeavesNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "m")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Start(ctx, Config{Paths: p, Log: slog.New(handler(func(r slog.Record) {
		if r.Message == "NIC is up" {
			cancel()
		}
	}))})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("start says %v", err)
	}
	for _, path := range []string{p.Data, p.Run, "/run/netns/lambdanic-" + p.Instance, filepath.Join(nic.DefaultPinDir, p.Instance),
		filepath.Join(nic.DefaultPinDir, p.Instance+":limits")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s remains (%v)", path, err)
		}
	}
}

// Another user is not told that root's instance is down, let alone by that user's own command.
func TestOthersAreSentToRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it becomes another user")
	}
	p := newInstance(t, "n")
	if err := os.MkdirAll(filepath.Join(systemRun, p.Instance), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(p.Run)), 0o755); err != nil { // that user's own place has nothing
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = os.Remove(filepath.Join(systemRun, p.Instance)), os.Remove(systemRun) })
	as := make(chan [2]error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		const nobody = 65534
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			as <- [2]error{errno, errno}
			return
		}
		_, list := NewClient(p).List(context.Background(), "")
		as <- [2]error{list, Down(context.Background(), p, false)}
	}()
	for i, err := range <-as {
		if err == nil || !strings.Contains(err.Error(), "run as root") {
			t.Errorf("%s says %v", [2]string{"list", "down"}[i], err)
		}
	}
}

func TestDetach(t *testing.T) {
	p := newInstance(t, "h")
	detach := func(p Paths, listen string) (*api.Node, error) {
		raw, err := json.Marshal(Config{Paths: p, Listen: listen})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(childEnv, string(raw))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return Detach(ctx, p, nil)
	}
	node, err := detach(p, anyPort)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := NewClient(p).Node(t.Context()); err != nil || n.PID != node.PID || n.PID == os.Getpid() {
		t.Errorf("%+v (%v), want process %d", n, err, node.PID)
	}
	other := newInstance(t, "i")
	if _, err := detach(other, node.Listen); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("with a port in use: %v", err)
	}
	if _, err := os.Stat(other.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s remains (%v)", other.Data, err)
	}
}

func TestDownFindsTheNICWithoutRecords(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "g")
	mustUp(t, Config{Paths: p}).kill()
	if err := os.RemoveAll(p.Run); err != nil {
		t.Fatal(err)
	}
	if err := Down(t.Context(), p, true); err != nil {
		t.Fatal(err)
	}
	if ns, err := netns.GetFromName("lambdanic-" + p.Instance); err == nil {
		_ = ns.Close()
		t.Error("the NIC's namespace remains")
	}
}

func TestDownEndsARunningDaemon(t *testing.T) {
	p := newInstance(t, "d")
	c := mustUp(t, Config{Paths: p})
	if err := Down(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the daemon ended with %v: %s", err, c.stderr.String())
	}
	if _, err := os.Stat(p.store()); err != nil {
		t.Errorf("down without purge removed the store: %v", err)
	}
}

func TestOthersCannotReachIt(t *testing.T) {
	p := newInstance(t, "e")
	c := mustUp(t, Config{Paths: p, Listen: anyPort})
	for path, want := range map[string]os.FileMode{p.Data: 0o700, p.Run: 0o700, p.Socket(): 0o600} {
		if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s: %v (%v), want %v", path, fi.Mode(), err, want)
		}
	}
	r, err := http.Get("http://" + c.node.Listen + "/system/functions")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusUnauthorized {
		t.Errorf("/system/functions by TCP without credentials: %d", r.StatusCode)
	}
}

// The NIC goes on serving when the daemon is killed, and the next daemon takes it over with all that is deployed.
func TestNICOutlivesTheDaemon(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "f")
	first := mustUp(t, Config{Paths: p, Listen: anyPort})
	f := deployWebServer(t, p)
	if f.Target != api.TargetNIC {
		t.Fatalf("deployed on %s: %+v", f.Target, f.Refused)
	}
	want := get(t, first.node.Listen)
	client, err := lambdanic.Dial(f.Endpoint.String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	first.kill()
	for range 100 {
		r, err := client.Call(t.Context(), lambdanic.Request{Workload: f.Workload})
		if err != nil || string(r.Body) != want {
			t.Fatalf("without a daemon: %q (%v), want %q", r.Body, err, want)
		}
	}
	second := mustUp(t, Config{Paths: p, Listen: anyPort})
	if got := get(t, second.node.Listen); got != want {
		t.Errorf("the next daemon's gateway answers %q, want %q", got, want)
	}
	again, err := NewClient(p).Describe(t.Context(), "", "web")
	if err != nil || again.Revision != f.Revision || again.Workload != f.Workload || again.State != api.StateReady {
		t.Errorf("the next daemon has %+v (%v), want revision %d as before", again, err, f.Revision)
	}
	if next := deployWebServer(t, p); next.Revision != f.Revision+1 || next.Workload != f.Workload {
		t.Errorf("deployed again as %+v", next)
	}
	if err := NewClient(p).Remove(t.Context(), "", "web"); err != nil {
		t.Fatal(err)
	}
	if r, err := http.Get("http://" + second.node.Listen + "/function/web"); err != nil || r.StatusCode != http.StatusNotFound {
		t.Errorf("after remove: %v (%v)", r, err)
	}
}

func deployWebServer(t *testing.T, p Paths) *api.Function {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := Build(ctx, p, "../../lambdas/web_server")
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewClient(p).Deploy(ctx, types.FunctionDeployment{Service: "web", Image: a.Image})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func get(t *testing.T, listen string) string {
	t.Helper()
	r, err := http.Get("http://" + listen + "/function/web")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%d %q (%v)", r.StatusCode, body, err)
	}
	return string(body)
}

func TestPaths(t *testing.T) {
	for _, bad := range []string{"", "A", "a/b", "..", "-a", "a_b", strings.Repeat("a", 33)} {
		if _, err := NewPaths(bad, "/d", "/r"); err == nil {
			t.Errorf("%q is taken for an instance name", bad)
		}
	}
	if _, err := NewPaths("a", "/d", "/"+strings.Repeat("r", 100)); err == nil {
		t.Error("a path that is too long for a socket is taken")
	}
	if p, err := NewPaths("a", "/d", "/r"); err != nil || p.Socket() != "/r/a/lambdanic.sock" || p.store() != "/d/a/store" {
		t.Errorf("%+v (%v)", p, err)
	}
	for want, dirs := range map[string][2]string{
		"lambdanic up --name a":                              {usualData(), usualRun(usualData())},
		"lambdanic up --name a --data-dir /d --run-dir /run": {"/d", "/run"},
	} {
		if p, err := NewPaths("a", dirs[0], dirs[1]); err != nil || p.Command("up") != want {
			t.Errorf("%s (%v), want %s", p.Command("up"), err, want)
		}
	}
}

// The gateway's thread runs a lambda itself only where one packet goes in and one soon comes back.
func TestCanBeAsked(t *testing.T) {
	plain := api.Spec{Name: "plain"}.Default()
	if !canBeAsked(&plain) {
		t.Fatal("a lambda of one packet is not asked")
	}
	for name, change := range map[string]func(*api.Spec){
		"messages":   func(s *api.Spec) { s.Message.Mode = api.ModeAssemble },
		"a service":  func(s *api.Spec) { s.Services = []api.ServiceSpec{{Name: "memcached"}} },
		"once":       func(s *api.Spec) { s.Once = true },
		"a long run": func(s *api.Spec) { s.Limits.Time = askLimit + api.Duration(time.Microsecond) },
	} {
		s := plain
		if change(&s); canBeAsked(&s) {
			t.Errorf("a lambda with %s is asked", name)
		}
	}
}

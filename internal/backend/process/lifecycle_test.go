package process

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/freeport"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func mustDeploy(t testing.TB, b *Backend, d backend.Deployment) netip.AddrPort {
	t.Helper()
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	endpoint, ok := b.Endpoint(d.Workload)
	if !ok {
		t.Fatal("no endpoint")
	}
	return endpoint
}

func (c *rawClient) count() uint32 {
	c.t.Helper()
	_, p := c.call(workload, methodCount, make([]byte, 4), 0)
	return binary.LittleEndian.Uint32(p)
}

func pidOf(t testing.TB, b *Backend, workload uint32) int {
	t.Helper()
	in, err := b.get(workload, false)
	if err != nil || in == nil {
		t.Fatalf("workload %#x: %v", workload, err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.child.PID
}

// While a process is being changed, which may take as long as starting one, its users do not wait.
func TestNobodyWaitsForAChange(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	want := mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	in, err := b.get(workload, false)
	if err != nil {
		t.Fatal(err)
	}
	in.changing.Lock()
	defer in.changing.Unlock()
	used := make(chan error, 1)
	go func() {
		if got, ok := b.Endpoint(workload); !ok || got != want {
			t.Errorf("endpoint %v, %t; want %v", got, ok, want)
		}
		_, err := b.Status(t.Context())
		used <- err
	}()
	select {
	case err := <-used:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("who uses it waits for the change")
	}
}

// A new revision takes over in the same process, with the kept state; one whose kept state differs is refused.
func TestSwapKeepsState(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet"))))
	pid := pidOf(t, b, workload)
	for range 5 {
		c.count()
	}
	second := deployment(workload, 2, api.ModePacket, fixture(t, "packet", "FIXTURE_REVISION=2"))
	mustDeploy(t, b, second)
	if got := c.count(); got != 6 {
		t.Errorf("count %d after the swap, want 6", got)
	}
	h, p := c.call(workload, methodRevision, make([]byte, 4), 0)
	if h.Revision != 2 || p[0] != 2 {
		t.Errorf("revision %d answered with code of %d", h.Revision, p[0])
	}
	wider := deployment(workload, 3, api.ModePacket, fixture(t, "packet", "FIXTURE_WIDER"))
	err := b.Deploy(t.Context(), wider)
	if err == nil || !strings.Contains(err.Error(), "size") {
		t.Errorf("a layout that is not what it says: %v", err)
	}
	wider.Layouts.Kept = "another"
	err = b.Deploy(t.Context(), wider)
	if err == nil || !strings.Contains(err.Error(), "kept objects differ") {
		t.Errorf("other layout: %v", err)
	}
	err = b.Deploy(t.Context(), deployment(workload, 3, api.ModePacket, []byte("no ELF file")))
	if err == nil {
		t.Error("garbage was deployed")
	}
	mustDeploy(t, b, second) // does nothing
	if got := c.count(); got != 7 || pidOf(t, b, workload) != pid {
		t.Errorf("count %d after deployments that failed, want 7; process %d, was %d", got, pidOf(t, b, workload), pid)
	}
	if err := b.Remove(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	if list, err := b.Status(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("after remove: %v, %v", list, err)
	}
	if left, _ := os.ReadDir(b.cfg.RunDir); len(left) != 0 {
		t.Errorf("after remove there is %v", left)
	}
	if err := b.Remove(t.Context(), workload); err != nil {
		t.Errorf("remove again: %v", err)
	}
}

// lines takes what is written, line by line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// The log says whose process died, and what that means.
func TestDeathIsLogged(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	said := make(lines, 16)
	b.cfg.Logger = slog.New(slog.NewTextHandler(said, nil))
	mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	pid := pidOf(t, b, workload)
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case line := <-said:
		for _, want := range []string{"function=test/fixture", fmt.Sprintf("workload=%#x", workload), "state"} {
			if !strings.Contains(line, want) {
				t.Errorf("the log says %q, without %q", line, want)
			}
		}
	case <-time.After(patience):
		t.Fatal("the log says nothing")
	}
	eventually(t, "the process runs again", func() bool {
		list, err := b.Status(t.Context())
		return err == nil && len(list) == 1
	})
}

// The next daemon knows of a process's death, as of the NIC's faults, and counts it only for its revision.
func TestDeathsOutliveTheDaemon(t *testing.T) {
	dir := shortdir.New(t)
	first := newBackend(t, checkedHost, dir)
	packet := fixture(t, "packet")
	mustDeploy(t, first, deployment(workload, 1, api.ModePacket, packet))
	if err := unix.Kill(pidOf(t, first, workload), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	counted := func(b *Backend, deaths uint64, why string) bool {
		list, err := b.Status(t.Context())
		return err == nil && len(list) == 1 && list[0].Stats.Faults == deaths && list[0].Stats.FaultsBy[api.FaultCrash] == deaths &&
			list[0].Fault == why
	}
	const why = "its process died: signal: killed"
	eventually(t, "the process runs again", func() bool { return counted(first, 1, why) })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next := newBackend(t, checkedHost, dir)
	if adopted, err := next.Adopt(t.Context()); err != nil || len(adopted) != 1 {
		t.Fatalf("adopted %v, %v", adopted, err)
	}
	if !counted(next, 1, why) {
		list, err := next.Status(t.Context())
		t.Errorf("the next daemon counts %+v (%v)", list, err)
	}
	mustDeploy(t, next, deployment(workload, 2, api.ModePacket, packet))
	if !counted(next, 0, "") {
		list, err := next.Status(t.Context())
		t.Errorf("the next revision counts %+v (%v)", list, err)
	}
}

// A message in assembly is finished by the revision that began it, which also answers the pulls.
func TestMessageKeepsItsRevision(t *testing.T) {
	b := newBackend(t, checkedHost, shortdir.New(t))
	native := fixture(t, "assemble")
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModeAssemble, native)))
	packets := c.fragments(0, randomBytes(3000), 1000, 0, api.FlagAckWanted)
	c.send(packets[0])
	c.receive()
	mustDeploy(t, b, deployment(workload, 2, api.ModeAssemble, native))
	c.send(packets[1])
	if h, _ := c.receive(); h.Revision != 1 {
		t.Errorf("acknowledgement of revision %d, want 1", h.Revision)
	}
	c.send(packets[2])
	if h, _ := c.receive(); h.Type != api.TypeResponse || h.Revision != 1 {
		t.Errorf("got %+v, want a response of revision 1", h)
	}
	if h, _ := c.call(workload, 0, []byte("x"), 0); h.Revision != 2 {
		t.Errorf("new message: revision %d, want 2", h.Revision)
	}
}

// Under load, swaps lose no request, and each answer comes from a single revision.
func TestSwapsLoseNothing(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	objects := [][]byte{fixture(t, "packet", "FIXTURE_REVISION=0"), fixture(t, "packet", "FIXTURE_REVISION=1")}
	endpoint := mustDeploy(t, b, deployment(workload, 1, api.ModePacket, objects[1]))
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		c := dial(t, endpoint)
		wg.Go(func() {
			for !stop.Load() {
				h, p := c.call(workload, methodRevision, make([]byte, 4), 0)
				if h.Type != api.TypeResponse || len(p) != 1 || uint32(p[0]) != h.Revision%2 {
					t.Errorf("revision %d answered %d: %+v", h.Revision, p[0], h)
					return
				}
			}
		})
	}
	for revision := uint32(2); revision < 22; revision++ {
		if err := b.Deploy(t.Context(), deployment(workload, revision, api.ModePacket, objects[revision%2])); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
}

func TestRestart(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	endpoint := mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	for range 2 {
		pid := pidOf(t, b, workload)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another process serves", func() bool {
			list, err := b.Status(t.Context())
			return err == nil && len(list) == 1 && pidOf(t, b, workload) != pid
		})
	}
	c := dial(t, endpoint)
	if h, p := c.call(workload, methodEcho, []byte("back"), 0); h.Revision != 1 || string(p) != "back" {
		t.Errorf("got %+v %q", h, p)
	}
}

// Other settings need another process; it takes over without a gap.
func TestReplace(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	d := deployment(workload, 1, api.ModePacket, fixture(t, "packet"))
	c := dial(t, mustDeploy(t, b, d))
	pid := pidOf(t, b, workload)
	d.Revision, d.Spec.Limits.Memory = 2, 2<<20
	mustDeploy(t, b, d)
	if pidOf(t, b, workload) == pid {
		t.Error("same process")
	}
	if h, _ := c.call(workload, methodEcho, nil, 0); h.Revision != 2 {
		t.Errorf("revision %d, want 2", h.Revision)
	}
	d.Revision, d.Spec.Limits.Memory = 3, 4096
	if err := b.Deploy(t.Context(), d); err == nil || !strings.Contains(err.Error(), "limits.memory") {
		t.Errorf("lambda beyond its memory: %v", err)
	}
	if h, _ := c.call(workload, methodEcho, nil, 0); h.Revision != 2 {
		t.Errorf("revision %d, want 2 still", h.Revision)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	b.cfg.Listen = func(uint32) (netip.AddrPort, error) { return netip.MustParseAddrPort("192.0.2.1:4370"), nil }
	err := b.Deploy(t.Context(), deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	if err == nil || !strings.Contains(err.Error(), "listen") {
		t.Errorf("address of another machine: %v", err)
	}
	if left, _ := os.ReadDir(b.cfg.RunDir); len(left) != 0 {
		t.Errorf("there is %v", left)
	}
	if list, err := b.Status(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("status %v, %v", list, err)
	}
}

func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give privileges up")
	}
	b := newBackend(t, plainHost, shortdir.New(t))
	mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pidOf(t, b, workload)))
	if err != nil {
		t.Fatal(err)
	}
	in, _ := b.get(workload, false)
	user := fmt.Sprint(userOf(in.dir))
	for _, want := range []string{
		"Uid:\t" + strings.Join([]string{user, user, user, user}, "\t"), "NoNewPrivs:\t1", "CapEff:\t0000000000000000",
	} {
		if !strings.Contains(string(status), want) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	info, err := os.Stat(in.socket())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("control socket: %v, %v", info, err)
	}
}

const daemonEnv = "LAMBDANIC_TEST_PROCESS_DAEMON"

// TestDaemon is not a test, but the daemon that TestAdoption kills.
func TestDaemon(t *testing.T) {
	dir := os.Getenv(daemonEnv)
	if dir == "" {
		return
	}
	b, err := New(Config{
		HostBinary: plainHost, RunDir: dir, Listen: freeport.UDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	native := fixture(t, "packet")
	for i := range uint32(2) {
		if err := b.Deploy(t.Context(), deployment(workload+i, 1, api.ModePacket, native)); err != nil {
			t.Fatal(err)
		}
	}
	endpoint, _ := b.Endpoint(workload)
	fmt.Printf("ready %s\n", endpoint)
	select {}
}

// The daemon is killed; its processes serve on, without a request lost, and the next daemon adopts them. One of the two
// dies meanwhile, and leaves nothing behind.
func TestAdoption(t *testing.T) {
	dir := shortdir.New(t)
	daemon := exec.Command(os.Args[0], "-test.run=^TestDaemon$", "-test.timeout=60s")
	daemon.Env = append(os.Environ(), daemonEnv+"="+dir, "TMPDIR="+t.TempDir()) // it cannot remove what it makes there
	out, err := daemon.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Process.Kill() })
	b := newBackend(t, plainHost, dir) // ends what is left, also after a failure
	t.Cleanup(func() { b.Adopt(context.WithoutCancel(t.Context())) })

	var endpoint netip.AddrPort
	for lines := bufio.NewScanner(out); !endpoint.IsValid() && lines.Scan(); {
		if addr, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
			endpoint = netip.MustParseAddrPort(addr)
		}
	}
	if !endpoint.IsValid() {
		t.Fatal("the daemon did not start")
	}
	c := dial(t, endpoint)
	c.count()
	daemon.Process.Kill()
	daemon.Wait()
	if got := c.count(); got != 2 {
		t.Errorf("count %d while no daemon runs, want 2", got)
	}

	r, err := readRecord(filepath.Join(dir, fmt.Sprintf("%08x", workload+1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second process is gone", func() bool {
		_, err := listener(filepath.Join(dir, fmt.Sprintf("%08x", workload+1), r.Control))
		return err != nil
	})
	adopted, err := b.Adopt(t.Context())
	if err != nil || len(adopted) != 1 || adopted[0] != workload {
		t.Fatalf("adopted %#x, %v", adopted, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("there is %v", left)
	}
	if got, ok := b.Endpoint(workload); !ok || got != endpoint {
		t.Errorf("endpoint %v, was %v", got, endpoint)
	}
	mustDeploy(t, b, deployment(workload, 2, api.ModePacket, fixture(t, "packet", "FIXTURE_REVISION=2")))
	if got := c.count(); got != 3 {
		t.Errorf("count %d after adoption and swap, want 3", got)
	}
	pid := pidOf(t, b, workload)
	syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "an adopted process is started again", func() bool {
		list, err := b.Status(t.Context())
		return err == nil && len(list) == 1 && list[0].Revision == 2 && pidOf(t, b, workload) != pid
	})
}

// A process that was started but not recorded is ended by the next daemon.
func TestAdoptionEndsTheUnrecorded(t *testing.T) {
	dir := shortdir.New(t)
	first := newBackend(t, plainHost, dir)
	mustDeploy(t, first, deployment(workload, 1, api.ModePacket, fixture(t, "packet")))
	pid := pidOf(t, first, workload)
	in, _ := first.get(workload, false)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(in.dir, recordFile)); err != nil {
		t.Fatal(err)
	}
	second := newBackend(t, plainHost, dir)
	if adopted, err := second.Adopt(t.Context()); err != nil || len(adopted) != 0 {
		t.Errorf("adopted %v, %v", adopted, err)
	}
	eventually(t, "the process is gone", func() bool {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil) // it is still this test's child
		return got == pid || err == syscall.ECHILD
	})
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("there is %v", left)
	}
}

// Two workers get the packets of one message, whose client sends to several addresses: exactly one completes it.
func TestTwoWorkersOneMessage(t *testing.T) {
	ports := servePorts(t, "--message-max", "65536")
	const messages, size = 300, 100
	message := randomBytes(15*size + 1)
	c := rawClient{t: t}
	for m := range messages {
		packets := c.fragments(1, message, size, 100, 0)
		for i, p := range packets {
			ports.send(i%len(ports.addrs), p)
		}
		if request, n := ports.receive(); request != c.next || n != uint32(m+1) {
			t.Fatalf("message %d: %d counted for request %#x: it ran twice, or not at all", m, n, request)
		}
	}
	s, err := askStatus(t.Context(), ports.socket)
	if err != nil || s.Stats.Replies != messages || s.Stats.Requests != messages {
		t.Errorf("status %+v, %v", s, err)
	}
}

func TestSpinning(t *testing.T) {
	b := newBackend(t, plainHost, shortdir.New(t))
	b.cfg.Spin, b.cfg.Threads = true, 2
	c := dial(t, mustDeploy(t, b, deployment(workload, 1, api.ModePacket, fixture(t, "packet"))))
	for range 1000 {
		if h, p := c.call(workload, methodEcho, []byte("round"), 0); h.Type != api.TypeResponse || string(p) != "round" {
			t.Fatalf("got %+v %q", h, p)
		}
	}
}

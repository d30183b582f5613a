package nic

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module/calls"
	"github.com/lambdanic/lambdanic/internal/nic/module/pacer"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/packets"
)

// A service that does not answer: the client is told, once.
func TestTimeout(t *testing.T) {
	for _, mode := range []Mode{ModeNative, ModeGeneric} {
		t.Run(string(mode), func(t *testing.T) { testTimeout(t, mode) })
	}
}

func testTimeout(t *testing.T, mode Mode) {
	const timeout, calls = 30 * time.Millisecond, 20
	config := pacedConfig(t)
	config.Mode = mode
	n := open(t, config)
	deploy(t, n, kvRevision(t, 1, newFake(t, n.HostAddr()).addr(), timeout))
	c := dialNIC(t, n.Addr())
	for range calls {
		c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
	}
	if got := counted(t, n, "timeouts"); got != calls {
		t.Errorf("%d time-outs counted, want %d", got, calls)
	}
	status, err := n.Status(t.Context())
	if err != nil || len(status) != 1 || status[0].Stats.Errors != calls {
		t.Errorf("the lambda is not charged for its time-outs: %+v, %v", status, err)
	}
}

// Thousands of calls that expire together, beside one that has time.
func TestManyTimeouts(t *testing.T) {
	const calls, batch = 5000, 250
	n := open(t, pacedConfig(t))
	silent := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, silent.addr(), longest))
	c := dialNIC(t, n.Addr())
	bigBuffers(t, c.conn)
	bigBuffers(t, silent.conn)
	patient := c.send(methodGet, []byte("patient"), 64)
	question := silent.receive()

	deploy(t, n, kvRevision(t, 2, silent.addr(), 500*time.Millisecond))
	missing := map[uint64]bool{}
	for range calls / batch {
		for range batch {
			missing[c.send(methodGet, []byte("key"), 64)] = true
		}
		for range batch {
			silent.receive()
		}
	}
	for len(missing) > 0 {
		h, _ := c.receive()
		if h.Type != api.TypeError || api.Code(h.Code) != api.CodeTimeout || !missing[h.Request] {
			t.Fatalf("%d time-outs are missing, got %+v", len(missing), h)
		}
		delete(missing, h.Request)
	}
	silent.answer(question, 0, 1, value("patient", "late"))
	if h, body := c.receive(); h.Request != patient || string(body) != "patient=late" {
		t.Errorf("the call that had time: %+v %q", h, body)
	}
}

// However a call came, the error finds its way back, in packets that gopacket finds right.
func TestExpiredPacket(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, kvRevision(t, 1, newFake(t, n.HostAddr()).addr(), time.Millisecond))
	expire, err := ebpf.LoadPinnedProgram(n.cfg.site().Pin(pacer.Program), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer expire.Close()
	for _, vlan := range [][]uint16{nil, {5}, {5, 6}} {
		for _, ipv6 := range []bool{false, true} {
			t.Run(fmt.Sprintf("VLAN %v, IPv6 %t", vlan, ipv6), func(t *testing.T) {
				f := packets.Frame{VLAN: vlan, IPv6: ipv6, TOS: 8, RPC: packets.RPC{Workload: "kv", Request: 99, Payload: "key", Room: 64}}
				frame, err := f.Build(map[string]uint32{"kv": kvWorkload})
				if err != nil {
					t.Fatal(err)
				}
				begin(t, n, frame)
				index := lastCall(t, n)
				var out []byte
				eventually(t, "the call expires", func() bool {
					var verdict uint32
					verdict, out = runExpire(t, expire, index)
					return verdict == xdpTX
				})
				h, payload, err := packets.Answer(frame, out)
				if err != nil {
					t.Fatal(err)
				}
				if h.Type != api.TypeError || api.Code(h.Code) != api.CodeTimeout || len(payload) != 0 {
					t.Errorf("got %+v %q", h, payload)
				}
				if verdict, _ := runExpire(t, expire, index); verdict != xdpDrop {
					t.Error("it expires twice")
				}
			})
		}
	}
}

// A try takes as long as the service may, and a call no longer than its client waits: neither ends before or after that.
func TestCallIsDue(t *testing.T) {
	const timeout, early = time.Hour, 5 * time.Minute // no test takes so long
	n := newTestNIC(t)
	d := kvRevision(t, 1, newFake(t, n.HostAddr()).addr(), timeout)
	d.Services[0].Retries = 1
	deploy(t, n, d)
	expire, err := ebpf.LoadPinnedProgram(n.cfg.site().Pin(pacer.Program), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer expire.Close()
	for i, tc := range []struct {
		deadline, left time.Duration // how long the client waits, and what remains after the tries
		tries          []time.Duration
		code           api.Code
	}{
		{0, timeout, []time.Duration{timeout}, api.CodeTimeout},
		{timeout / 2, timeout / 2, nil, api.CodeDeadline},
		{timeout + 2*early, 2 * early, []time.Duration{timeout}, api.CodeDeadline},
	} {
		wait := uint32(tc.deadline.Microseconds())
		f := packets.Frame{RPC: packets.RPC{Workload: "kv", Request: uint64(i), Payload: "key", Room: 64, DeadlineUS: &wait}}
		frame, err := f.Build(map[string]uint32{"kv": kvWorkload})
		if err != nil {
			t.Fatal(err)
		}
		before := counted(t, n, "retries")
		begin(t, n, frame)
		index := lastCall(t, n)
		// pass is the duration of the next try, or what is left.
		pass := func(time time.Duration) []byte {
			age(t, n, index, time-early)
			if verdict, _ := runExpire(t, expire, index); verdict != xdpDrop {
				t.Errorf("a client that waits %v: the try is over %v before its time", tc.deadline, early)
			}
			age(t, n, index, early)
			verdict, out := runExpire(t, expire, index)
			if verdict == xdpDrop {
				t.Errorf("a client that waits %v: the try is not over after %v", tc.deadline, time)
			}
			return out
		}
		for _, try := range tc.tries {
			pass(try)
		}
		h, _, err := packets.Answer(frame, pass(tc.left))
		if err != nil || h.Type != api.TypeError || api.Code(h.Code) != tc.code {
			t.Errorf("a client that waits %v: got %+v, %v, want code %d", tc.deadline, h, err, tc.code)
		}
		if got := counted(t, n, "retries") - before; got != uint64(len(tc.tries)) {
			t.Errorf("a client that waits %v: sent again %d times, want %d", tc.deadline, got, len(tc.tries))
		}
	}
}

// age makes a call so much older.
func age(t *testing.T, n *NIC, index uint32, by time.Duration) {
	t.Helper()
	var c calls.Call
	records := pinnedMap(t, n, "ln_calls")
	err := records.Lookup(index, &c)
	c.BeganNs -= uint64(by)
	if c.DeadlineNs != math.MaxUint64 {
		c.DeadlineNs -= uint64(by)
	}
	if err == nil {
		err = records.Put(index, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Nothing else expires: calls with time left, free records, and records that do not exist.
func TestNothingExpires(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	id := c.send(methodGet, []byte("key"), 64)
	q := fake.receive()
	expire, err := ebpf.LoadPinnedProgram(n.cfg.site().Pin(pacer.Program), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer expire.Close()
	for _, index := range []uint32{uint32(q.id), uint32(q.id) + 1, 65535, 65536, 1<<32 - 1} {
		if verdict, _ := runExpire(t, expire, index); verdict != xdpDrop {
			t.Errorf("call %d expires", index)
		}
	}
	fake.answer(q, 0, 1, value("key", "in time"))
	if h, body := c.receive(); h.Request != id || string(body) != "key=in time" {
		t.Errorf("got %+v %q", h, body)
	}
	if got := counted(t, n, "timeouts"); got != 0 {
		t.Errorf("%d time-outs counted", got)
	}
}

// begin runs the NIC program on a request as if the interface had received it; the request must go on to the service.
func begin(t *testing.T, n *NIC, frame []byte) {
	t.Helper()
	err := veth.InNamed(n.Namespace(), func() error {
		l, err := netlink.LinkByName(n.Interface())
		if err != nil {
			return err
		}
		// struct xdp_md: the packet fills the whole of its data, and the interface is the fourth word.
		context := make([]byte, 24)
		binary.NativeEndian.PutUint32(context[4:], uint32(len(frame)))
		binary.NativeEndian.PutUint32(context[12:], uint32(l.Attrs().Index))
		opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 2048), Context: context}
		verdict, err := n.Root().Run(&opts)
		if err == nil && verdict != xdpTX {
			err = fmt.Errorf("verdict %d", verdict)
		}
		return err
	})
	if err != nil {
		t.Fatalf("run the NIC program: %v", err)
	}
}

// lastCall is the index of the last call's record.
func lastCall(t *testing.T, n *NIC) uint32 {
	t.Helper()
	var next, entry uint64
	err := pinnedMap(t, n, "ln_next_call").Lookup(uint32(0), &next)
	if err == nil {
		log := pinnedMap(t, n, "ln_call_log")
		err = log.Lookup(uint32(next-1)%log.MaxEntries(), &entry)
	}
	if err != nil || entry>>20 != next-1 {
		t.Fatalf("the log of calls: %d was last, entry %#x, %v", next-1, entry, err)
	}
	return uint32(entry & 0xfffff)
}

func runExpire(t *testing.T, expire *ebpf.Program, index uint32) (uint32, []byte) {
	t.Helper()
	opts := ebpf.RunOptions{Data: binary.NativeEndian.AppendUint32(nil, index), DataOut: make([]byte, 256)}
	opts.Data = append(opts.Data, make([]byte, 252)...)
	verdict, err := expire.Run(&opts)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, slices.Clone(opts.DataOut)
}

// daemonEnv makes TestActAsDaemon do something.
const daemonEnv = "LAMBDANIC_TEST_DAEMON"

type daemonOrder struct {
	Config  Config
	Stage   string // the P4 program to deploy; "" is for a key-value client, with this service:
	Service uint16 // port on the host
	Timeout time.Duration
}

// TestActAsDaemon is not a test but the daemon of TestPacerOutlivesDaemon.
func TestActAsDaemon(t *testing.T) {
	text := os.Getenv(daemonEnv)
	if text == "" {
		return
	}
	var order daemonOrder
	if err := json.Unmarshal([]byte(text), &order); err != nil {
		t.Fatal(err)
	}
	n, err := Up(t.Context(), order.Config)
	if err != nil {
		t.Fatal(err)
	}
	if order.Stage != "" {
		deploy(t, n, stageProgram(t, order.Stage, stageID, 1))
	} else {
		deploy(t, n, kvRevision(t, 1, netip.AddrPortFrom(n.HostAddr(), order.Service), order.Timeout))
	}
	fmt.Println("serving")
	<-t.Context().Done() // never: we are killed
}

// The daemon is killed while a call is in flight and others follow: each client is told. The next daemon adopts the pacer.
func TestPacerOutlivesDaemon(t *testing.T) {
	config := pacedConfig(t)
	silent := newFake(t, netip.IPv4Unspecified())
	order := daemonOrder{Config: config, Service: silent.addr().Port(), Timeout: 200 * time.Millisecond}
	order.Config.Log = nil
	kill := startDaemon(t, order)
	rec, err := readRecord(config.recordPath())
	if err != nil || rec == nil {
		t.Fatalf("the daemon wrote no record: %v", err)
	}
	c := dialNIC(t, netip.AddrPortFrom(rec.Addr, api.RPCPort))
	id := c.send(methodGet, []byte("key"), 64)
	kill()
	c.expectError(id, api.CodeTimeout)
	for range 3 {
		c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
	}
	before := pacerPID(t, config)
	n := open(t, config)
	if !n.Adopted() {
		t.Error("the NIC was not adopted")
	}
	if after := pacerPID(t, config); after != before {
		t.Errorf("pacer %d was replaced by %d", before, after)
	}
	c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
}

func startDaemon(t *testing.T, order daemonOrder) (kill func()) {
	t.Helper()
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestActAsDaemon$", "-test.v")
	cmd.Env = append(os.Environ(), daemonEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "serving" {
			return kill
		}
		t.Log(lines.Text())
	}
	t.Fatal("the daemon did not come up")
	return nil
}

// pacerPID is the pacer's process ID, which must run.
func pacerPID(t *testing.T, c Config) int {
	t.Helper()
	pid, err := pacer.PID(c.site())
	if err != nil || pid == 0 {
		t.Fatalf("no pacer runs: %v", err)
	}
	return pid
}

// A pacer that dies is replaced while the NIC is open.
func TestPacerRestarts(t *testing.T) {
	config := pacedConfig(t)
	n := open(t, config)
	deploy(t, n, kvRevision(t, 1, newFake(t, n.HostAddr()).addr(), 30*time.Millisecond))
	killed := pacerPID(t, config)
	if err := unix.Kill(killed, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pacer dies", func() bool {
		pid, err := pacer.PID(config.site())
		return pid != killed && err == nil
	})
	c := dialNIC(t, n.Addr())
	c.expectError(c.send(methodGet, []byte("key"), 64), api.CodeTimeout)
	if after := pacerPID(t, config); after == killed {
		t.Errorf("pacer %d lives on", killed)
	}
}

// Another build's pacer is replaced, and one that cannot be replaced is kept.
func TestPacerUpgrade(t *testing.T) {
	config := pacedConfig(t)
	reopen(t, config)
	first := pacerPID(t, config)
	text, err := os.ReadFile(config.PacerBinary)
	if err != nil {
		t.Fatal(err)
	}
	config.PacerBinary = filepath.Join(t.TempDir(), "pacer")
	if err := os.WriteFile(config.PacerBinary, text, 0o700); err != nil {
		t.Fatal(err)
	}
	reopen(t, config)
	second := pacerPID(t, config)
	if second == first {
		t.Errorf("pacer %d of another build still runs", first)
	}
	config.PacerBinary = "/nowhere/pacer"
	reopen(t, config)
	if third := pacerPID(t, config); third != second {
		t.Errorf("pacer %d was replaced by %d, of no build", second, third)
	}
}

// reopen brings the NIC up and closes it.
func reopen(t *testing.T, c Config) {
	t.Helper()
	n, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	shut(t, n)
}

// Without its program, pacer has nothing to do and ends by itself. The NIC serves on without it.
func TestPacerEnds(t *testing.T) {
	config := pacedConfig(t)
	reopen(t, config)
	if err := os.Remove(config.site().Pin(pacer.Program)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "pacer ends", func() bool {
		pid, err := pacer.PID(config.site())
		return pid == 0 && err == nil
	})
	config.PacerBinary = ""
	n := open(t, config)
	if n.Adopted() {
		t.Error("a NIC without its expire program was adopted")
	}
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	c.send(methodGet, []byte("key"), 64)
	fake.answer(fake.receive(), 0, 1, value("key", "x"))
	if h, body := c.receive(); h.Type != api.TypeResponse || string(body) != "key=x" {
		t.Errorf("got %+v %q", h, body)
	}
}

// Down leaves no pacer behind, and none of its files.
func TestDownEndsPacer(t *testing.T) {
	config := pacedConfig(t)
	open(t, config)
	pid := pacerPID(t, config)
	if err := Down(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("pacer %d lives: %v", pid, err)
	}
	for _, path := range []string{pacer.Log(config.site()), string(pacer.Cgroup(config.site()))} {
		if _, err := os.Stat(path); path != "" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left", path)
		}
	}
}

package ikernels

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A wire has a peer at its far end.
type wire struct {
	*site
	near, far netns.NsHandle
	end       veth.End // the far one
}

const wirePort = 4000

// newWire makes a pair from a namespace to another one.
func newWire(t testing.TB) *wire {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces and loads BPF programs: needs root")
	}
	host, err := NewHost(demux.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{site: &site{t: t, host: host, name: fmt.Sprintf("lngen%d", os.Getpid())}}
	w.near, w.far = isolated.Namespace(t, w.name), isolated.Namespace(t, w.name+"f")
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
	})
	addrs := func(last string) []netip.Prefix {
		return []netip.Prefix{netip.MustParsePrefix("10.77.0." + last + "/24"), netip.MustParsePrefix("fd77::" + last + "/64")}
	}
	w.in(func() (err error) {
		_, w.end, err = veth.New(veth.Side{Name: "lngen0", Addrs: addrs("1")}, veth.Side{Name: "lngen1", Addrs: addrs("2")}, w.far, 1)
		return err
	})
	return w
}

// receive has the far end receive what XDP sends.
func (w *wire) receive() { w.treat(xdpPass) }

const xdpDrop, xdpPass = 1, 2

// treat has the far end do something with all that comes.
func (w *wire) treat(action int32) {
	w.t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, action), asm.Return()}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { program.Close() })
	if err := veth.In(w.far, func() error {
		l, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: w.end.Index, Flags: link.XDPDriverMode})
		if err == nil {
			w.t.Cleanup(func() { l.Close() })
		}
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
}

// peer is a server at the far end, with room for all that is sent, and a socket that is connected to it.
func (w *wire) peer(own, address string, port uint16) (server, client *net.UDPConn) {
	w.t.Helper()
	at := netip.AddrPortFrom(netip.MustParseAddr(address), port)
	if err := veth.In(w.far, func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { server.Close() })
	if err := with(w.t, server, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 1<<26) }); err != nil {
		w.t.Fatal(err)
	}
	w.in(func() (err error) {
		client, err = net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(own)}, net.UDPAddrFromAddrPort(at))
		return err
	})
	w.t.Cleanup(func() { client.Close() })
	return server, client
}

const nowhere = uint32(generatorGeneratorLimitGENERATOR_NOWHERE)

// note has a message noted.
func note(t testing.TB, k *Ikernel, numberAt, timeAt uint32, message []byte) error {
	t.Helper()
	return noteBytes(t, k, append(binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, numberAt), timeAt), message...))
}

// noteBytes has a note delivered. It is one of those that fit the memory for notes at once.
func noteBytes(t testing.TB, k *Ikernel, note []byte) error {
	t.Helper()
	k.notes = true
	notes, page := k.coll.Maps["ik_notes"], os.Getpagesize()
	memory, err := unix.Mmap(notes.FD(), int64(page), page+int(notes.MaxEntries()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }()
	end := binary.NativeEndian.Uint64(memory)
	binary.NativeEndian.PutUint64(memory[uint64(page)+end:], uint64(len(note)))
	copy(memory[uint64(page)+end+8:], note)
	binary.NativeEndian.PutUint64(memory, end+(8+uint64(len(note))+7)&^7)
	_, err = k.Deliver()
	return err
}

// next reads a datagram.
func next(t testing.TB, server *net.UDPConn) []byte {
	t.Helper()
	b := make([]byte, 2000)
	_ = server.SetReadDeadline(time.Now().Add(patience))
	n, err := server.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// A generated datagram has its message, with a number and a time where it has places for them.
type generated struct {
	message          []byte
	numberAt, timeAt int // -1: none
	number, time     uint64
}

// expect reads n datagrams, and what the socket sends behind them. Numbers grow, by one unless the interface refused some.
func (g *generated) expect(t *testing.T, server, client *net.UDPConn, n, refused uint64) {
	t.Helper()
	first := g.number
	for i := range n {
		g.check(t, next(t, server), i)
	}
	if skipped := g.number - first - n; g.numberAt >= 0 && skipped > refused {
		t.Errorf("%d numbers are missing, and %d datagrams refused", skipped, refused)
	}
	send(t, client, "end")
	if got := next(t, server); string(got) != "end" {
		t.Fatalf("there is one more datagram: %x", got)
	}
}

func (g *generated) check(t *testing.T, got []byte, i uint64) {
	t.Helper()
	want := bytes.Clone(g.message)
	if len(got) != len(want) {
		t.Fatalf("datagram %d has %d bytes, want %d", i, len(got), len(want))
	}
	if g.numberAt >= 0 {
		number := binary.BigEndian.Uint64(got[g.numberAt:])
		if number < g.number {
			t.Fatalf("datagram %d has number %d, want %d or more", i, number, g.number)
		}
		g.number = number + 1
		binary.BigEndian.PutUint64(want[g.numberAt:], number)
	}
	if g.timeAt >= 0 {
		now := binary.BigEndian.Uint64(got[g.timeAt:])
		if now <= g.time {
			t.Fatalf("datagram %d is of %d ns, and the one before of %d", i, now, g.time)
		}
		g.time = now
		binary.BigEndian.PutUint64(want[g.timeAt:], now)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("datagram %d is %x, want %x", i, got, want)
	}
}

// awaitSent waits until the ikernel has sent all.
func awaitSent(t testing.TB, k *Ikernel) named {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r := registers(t, k)
		if r["running"] == 0 {
			return r
		}
		if time.Now().After(deadline) {
			t.Fatalf("the registers are %v", r)
		}
	}
}

func write(t testing.TB, k *Ikernel, values named) {
	t.Helper()
	if _, err := transact(k, nil, values); err != nil {
		t.Fatal(err)
	}
}

func message(size int) []byte {
	m := make([]byte, size)
	for i := range m {
		m[i] = byte(i*7 + 1)
	}
	return m
}

// TestGenerator has a plain server get as many datagrams as are asked for, with the right checksums, or the kernel would drop them.
func TestGenerator(t *testing.T) {
	w := newWire(t)
	w.receive()
	for i, c := range []struct {
		own, peer        string
		size             int
		numberAt, timeAt int // -1: none
		count, interval  uint64
	}{
		{"10.77.0.1", "10.77.0.2", 64, 0, 8, 3000, 0},
		{"fd77::1", "fd77::2", 64, 9, 31, 3000, 0}, // at odd places
		{"10.77.0.1", "10.77.0.2", 1472, 1464, 3, 1000, 0},
		{"fd77::1", "fd77::2", 1452, -1, 1443, 500, 1000},
		{"10.77.0.1", "10.77.0.2", 33, 24, -1, 200, 100000},
		{"10.77.0.1", "10.77.0.2", 0, -1, -1, 5, 0},
		{"10.77.0.1", "10.77.0.2", 7, -1, -1, 1, 0},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			server, client := w.peer(c.own, c.peer, wirePort+uint16(i))
			k := w.create("generator")
			defer k.Close()
			attach(t, k, client)
			g := generated{message: message(c.size), numberAt: c.numberAt, timeAt: c.timeAt}
			if err := note(t, k, uint32(c.numberAt), uint32(c.timeAt), g.message); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				write(t, k, named{"count": c.count, "interval": c.interval, "sent": 0, "refused": 0, "running": 1})
				r := awaitSent(t, k)
				if r["sent"] != c.count {
					t.Errorf("the registers are %v, want %d sent", r, c.count)
				}
				g.expect(t, server, client, c.count, r["refused"])
			}
			if _, err := server.WriteTo([]byte("x"), client.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			expect(t, "the socket", client, "x")
		})
	}
}

// runs has an ikernel send without end from a socket to a server, and returns when some have come.
func (w *wire) runs(k *Ikernel, interval uint64, server, client *net.UDPConn) {
	w.t.Helper()
	attach(w.t, k, client)
	if err := note(w.t, k, 0, nowhere, message(20)); err != nil {
		w.t.Fatal(err)
	}
	write(w.t, k, named{"interval": interval, "running": 1})
	for range 5 {
		next(w.t, server)
	}
}

// drained reads what has come until what the client sends, and returns how much it was. A server that has no more room loses that, too: it is sent again.
func drained(t *testing.T, server, client *net.UDPConn) (n uint64) {
	t.Helper()
	b := make([]byte, 2000)
	for try, deadline := 0, time.Now().Add(patience); time.Now().Before(deadline); try++ {
		end := fmt.Sprint("end ", try)
		send(t, client, end)
		for {
			_ = server.SetReadDeadline(time.Now().Add(time.Second))
			got, err := server.Read(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(b[:got]) == end {
				return n
			}
			n++
		}
	}
	t.Fatal("it does not end")
	return n
}

// TestGeneratorStops has one that sends without end stop in each way there is: what is sent then is all.
func TestGeneratorStops(t *testing.T) {
	for name, stop := range map[string]func(*testing.T, *wire, *Ikernel, *net.UDPConn) error{
		"running is 0": func(t *testing.T, _ *wire, k *Ikernel, _ *net.UDPConn) error {
			write(t, k, named{"running": 0})
			return nil
		},
		"detached":  func(t *testing.T, _ *wire, k *Ikernel, client *net.UDPConn) error { return with(t, client, k.Detach) },
		"destroyed": func(_ *testing.T, _ *wire, k *Ikernel, _ *net.UDPConn) error { return k.Close() },
		"a fault": func(t *testing.T, _ *wire, k *Ikernel, _ *net.UDPConn) error {
			if err := noteBytes(t, k, nil); err == nil {
				return errors.New("there is no fault")
			}
			return nil
		},
		"the daemon ends": func(_ *testing.T, w *wire, _ *Ikernel, _ *net.UDPConn) error { return w.host.Close() },
	} {
		for _, interval := range []uint64{0, 1000, 20000} {
			t.Run(fmt.Sprintf("%s, every %d ns", name, interval), func(t *testing.T) {
				w := newWire(t)
				w.receive()
				server, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
				k := w.create("generator")
				w.runs(k, interval, server, client)
				if err := stop(t, w, k, client); err != nil {
					t.Fatal(err)
				}
				drained(t, server, client)
				if n := drained(t, server, client); n != 0 {
					t.Errorf("%d datagrams come after the end", n)
				}
			})
		}
	}
}

// TestGeneratorSocketCloses has the socket close: the thread ends, and the ikernel can have another socket.
func TestGeneratorSocketCloses(t *testing.T) {
	w := newWire(t)
	w.receive()
	server, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
	k := w.create("generator")
	w.runs(k, 0, server, client)
	_ = client.Close()
	var other *net.UDPConn
	w.in(func() (err error) {
		other, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	})
	defer other.Close()
	drained(t, server, other)
	if n := drained(t, server, other); n != 0 {
		t.Errorf("%d datagrams come after the socket is closed", n)
	}
	attach(t, k, other)
	r := registers(t, k)
	write(t, k, named{"count": r["sent"] + 3, "running": 1})
	awaitSent(t, k)
	if n := drained(t, server, other); n != 3 {
		t.Errorf("%d datagrams come from the other socket, want 3", n)
	}
}

// TestGenerators has two at once, each with its message, its rate and its socket.
func TestGenerators(t *testing.T) {
	w := newWire(t)
	w.receive()
	const count = 2000
	type pair struct {
		k              *Ikernel
		server, client *net.UDPConn
		generated
	}
	var all []*pair
	for i, interval := range []uint64{0, 5000} {
		server, client := w.peer("10.77.0.1", "10.77.0.2", wirePort+uint16(i))
		p := &pair{w.create("generator"), server, client, generated{message: message(50 + i), numberAt: 1 + i, timeAt: -1}}
		attach(t, p.k, client)
		if err := note(t, p.k, uint32(p.numberAt), nowhere, p.message); err != nil {
			t.Fatal(err)
		}
		write(t, p.k, named{"count": count, "interval": interval})
		all = append(all, p)
	}
	for _, p := range all {
		write(t, p.k, named{"running": 1})
	}
	for _, p := range all {
		r := awaitSent(t, p.k)
		if r["sent"] != count {
			t.Errorf("the registers are %v, want %d sent", r, count)
		}
		p.expect(t, p.server, p.client, count, r["refused"])
	}
}

// TestGeneratorRefuses has sockets from which XDP cannot send.
func TestGeneratorRefuses(t *testing.T) {
	w := newWire(t)
	_, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
	k := w.create("generator")
	defer k.Close()
	refused := func(what string, conn *net.UDPConn, want string) {
		t.Helper()
		if err := with(t, conn, k.Attach); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	refused("a peer that receives nothing by XDP", client, "xdp-features")
	w.receive()
	dial := func(to string) (conn *net.UDPConn) {
		w.in(func() (err error) {
			conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to)))
			return err
		})
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	refused("a neighbour that is not known", dial("10.77.0.99:1"), "is not known")
	refused("this machine", dial("127.0.0.1:1"), "of this machine")
	refused("a multicast address", dial("[ff02::1%lngen0]:1"), "multicast")
	refused("no peer", w.listen("10.77.0.1:0"), "not connected")
	attach(t, k, client)
	refused("a second socket", dial("10.77.0.2:1"), "one socket")
	if n := len(k.ports); n == 0 {
		t.Error("the socket is not attached")
	}
}

// TestGeneratorNotes has notes of which no message can be made. Each is a fault.
func TestGeneratorNotes(t *testing.T) {
	w := newWire(t)
	w.receive()
	for i, c := range []struct {
		numberAt, timeAt uint32
		size             int
	}{
		{nowhere, nowhere, 1473}, {0, nowhere, 7}, {nowhere, 1, 8}, {nowhere - 3, nowhere, 8}, {0, 7, 16}, {8, 1, 16}, {0, 0, 16},
	} {
		k := w.create("generator")
		if err := note(t, k, c.numberAt, c.timeAt, message(c.size)); err == nil || !strings.Contains(err.Error(), "impossible message") {
			t.Errorf("note %d: got %v", i, err)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, n := range []int{0, 7} {
		k := w.create("generator")
		if err := noteBytes(t, k, make([]byte, n)); err == nil || !strings.Contains(err.Error(), "impossible message") {
			t.Errorf("a note of %d bytes: got %v", n, err)
		}
		_ = k.Close()
	}
	server, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
	k := w.create("generator")
	w.runs(k, 1000000, server, client)
	if err := note(t, k, nowhere, nowhere, nil); err == nil || !strings.Contains(err.Error(), "message while running") {
		t.Errorf("a note while it runs: got %v", err)
	}
	other := w.create("generator")
	_, six := w.peer("fd77::1", "fd77::2", wirePort)
	attach(t, other, six)
	if err := note(t, other, nowhere, nowhere, message(1453)); err != nil {
		t.Fatal(err)
	}
	write(t, other, named{"running": 1})
	if _, text := fault(t, other); !strings.Contains(text, "peer out of reach") {
		t.Errorf("too long a message for the interface: %q", text)
	}
}

// TestGeneratorInterfaceGoes takes the interface away: its run ends, so that the kernel lets go of it, and that is a fault.
func TestGeneratorInterfaceGoes(t *testing.T) {
	for _, interval := range []uint64{0, 20000} {
		t.Run(fmt.Sprint(interval), func(t *testing.T) {
			w := newWire(t)
			w.receive()
			server, client := w.peer("10.77.0.1", "10.77.0.2", wirePort)
			k := w.create("generator")
			w.runs(k, interval, server, client)
			w.in(func() error { return veth.Remove("lngen0") })
			if _, text := fault(t, k); !strings.Contains(text, "interface gone") {
				t.Errorf("the fault is %q", text)
			}
		})
	}
}

// TestPacer has datagrams due at each interval, and those that are late for a while.
func TestPacer(t *testing.T) {
	begin := time.Now()
	var p pacer
	for _, c := range []struct {
		at       time.Duration
		interval uint64
		n        uint64
		wait     time.Duration
	}{
		{at: 0, interval: 1000, n: 1},
		{at: 400, interval: 1000, wait: 600},
		{at: 3400, interval: 1000, n: 3},
		{at: 3500, interval: 1000, wait: 500},
		{at: 3500 + time.Second, interval: 1000, n: 100000},
		{at: 4000 + time.Second, interval: 3000000000, n: 1},
		{at: 5000 + time.Second, interval: 3000000000, wait: time.Second},
		{at: 4000 + 4*time.Second, interval: 3000000000, n: 1},
		{at: 5 * time.Second, interval: 0, n: math.MaxUint64},
		{at: 5 * time.Second, interval: 1000, n: 1},
	} {
		n, wait := p.due(begin.Add(c.at), c.interval)
		if n != c.n || wait != c.wait {
			t.Errorf("after %v, every %d ns: %d are due, or in %v; want %d, or in %v", c.at, c.interval, n, wait, c.n, c.wait)
		}
		p.done += n
	}
}

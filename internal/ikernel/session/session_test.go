package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	wire "github.com/lambdanic/lambdanic/api/ikernel"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// patience is how long a datagram may take.
const patience = 20 * time.Second

// serve serves applications until the test ends, and returns where.
func serve(t testing.TB) (path string) {
	t.Helper()
	path, _ = serveUntil(t)
	return path
}

// serveUntil does so until stop.
func serveUntil(t testing.TB) (path string, stop func()) {
	t.Helper()
	return serveBy(t, func(l Listener) Listener { return l })
}

// serveBy does so with what by makes of the listener.
func serveBy(t testing.TB, by func(Listener) Listener) (path string, stop func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	host, err := ikernels.NewHost(demux.New(nil))
	if err != nil {
		t.Fatal(err)
	}
	path = shortdir.New(t) + "/s"
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Host: host, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx, by(l)) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, host.Close()); err != nil {
			t.Error(err)
		}
	})
	return path, stop
}

func open(t testing.TB, path string) *lambdanic.Ikernels {
	t.Helper()
	a, err := lambdanic.OpenIkernels(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func create(t testing.TB, a *lambdanic.Ikernels, name string) *lambdanic.Ikernel {
	t.Helper()
	k, err := a.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// pair makes a server's and a client's socket in a network namespace of their own.
func pair(t testing.TB) (server, client *net.UDPConn) {
	t.Helper()
	return pairBy(t, net.IPv4(127, 0, 0, 1))
}

// pairBy does so with an address of lo.
func pairBy(t testing.TB, ip net.IP) (server, client *net.UDPConn) {
	t.Helper()
	ns := isolated.Namespace(t, fmt.Sprintf("lnses%d", os.Getpid()))
	if err := veth.In(ns, func() (err error) {
		if server, err = net.ListenUDP("udp", &net.UDPAddr{IP: ip}); err == nil {
			client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close(); client.Close() })
	return server, client
}

// exchange sends a message and says who gets it first.
func exchange(t *testing.T, from *net.UDPConn, who string, to *net.UDPConn) {
	t.Helper()
	if _, err := io.WriteString(from, "x"); err != nil {
		t.Fatal(err)
	}
	_ = to.SetReadDeadline(time.Now().Add(patience))
	if n, _, err := to.ReadFromUDP(make([]byte, 10)); err != nil || n != 1 {
		t.Fatalf("%s gets %d bytes, %v", who, n, err)
	}
}

// TestSession has an application use an ikernel from its creation to its end.
func TestSession(t *testing.T) {
	a := open(t, serve(t))
	server, client := pair(t)
	k := create(t, a, "echo")
	exchange(t, client, "the server", server)
	if err := k.Attach(server); err != nil {
		t.Fatal(err)
	}
	exchange(t, client, "the client", client)
	if err := k.Write(map[string]int64{"bytes": -5}); err != nil {
		t.Fatal(err)
	}
	exchange(t, client, "the client", client)
	if r, err := k.Read(); err != nil || fmt.Sprint(r) != "map[bytes:-4 messages:2]" {
		t.Errorf("the registers are %v, %v", r, err)
	}
	if _, err := k.Transact(map[string]int64{"messages": 3}, map[string]int64{"messages": 9}); !errors.Is(err, lambdanic.ErrDiffers) {
		t.Errorf("got %v for a value that differs", err)
	}
	if r, err := k.Transact(map[string]int64{"messages": 2}, map[string]int64{"messages": 9}); err != nil || r["messages"] != 2 {
		t.Errorf("got %v, %v", r, err)
	}
	if err := k.Detach(server); err != nil {
		t.Fatal(err)
	}
	exchange(t, client, "the server", server)
	if err := k.Attach(server); err != nil {
		t.Fatal(err)
	}
	if err := k.Destroy(); err != nil {
		t.Fatal(err)
	}
	exchange(t, client, "the server", server)
}

// scarce is a Listener for which there are no file descriptors for a while.
type scarce struct {
	Listener
	fails atomic.Int32
}

func (s *scarce) AcceptUnix() (*net.UnixConn, error) {
	if s.fails.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: unix.EMFILE}
	}
	return s.Listener.AcceptUnix()
}

// TestNoDescriptors has the daemon run out of file descriptors: an application waits until there are some.
func TestNoDescriptors(t *testing.T) {
	path, _ := serveBy(t, func(l Listener) Listener {
		s := &scarce{Listener: l}
		s.fails.Store(3)
		return s
	})
	create(t, open(t, path), "echo")
}

// TestOffsetBeyond has threshold look for its integer farther behind than any message is long.
func TestOffsetBeyond(t *testing.T) {
	k := create(t, open(t, serve(t)), "threshold")
	server, client := pair(t)
	if err := errors.Join(k.Write(map[string]int64{"offset": 1 << 32}), k.Attach(server)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Write(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	passes(t, server, make([]byte, 8))
	if r, err := k.Read(); err != nil || r["count"] != 0 {
		t.Errorf("the registers are %v, %v: want no integer", r, err)
	}
}

// TestEnd ends an application's connection, as its death does. Its ikernels end, and that of another on the same socket goes on.
func TestEnd(t *testing.T) {
	path := serve(t)
	first, second := open(t, path), open(t, path)
	server, client := pair(t)
	if err := create(t, first, "echo").Attach(server); err != nil {
		t.Fatal(err)
	}
	other := create(t, second, "echo")
	if err := other.Attach(server); err != nil {
		t.Fatal(err)
	}
	exchange(t, client, "the client", client)
	if r, err := other.Read(); err != nil || r["messages"] != 0 {
		t.Errorf("the registers are %v, %v: the first answers all", r, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		exchange(t, client, "the client", client)
		if r, err := other.Read(); err == nil && r["messages"] > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the ikernels of an application that is gone stay")
		}
	}
}

// TestRefuses asks for what cannot be. The connection goes on.
func TestRefuses(t *testing.T) {
	a := open(t, serve(t))
	k := create(t, a, "threshold")
	stream := listenTCP(t)
	destroyed := create(t, a, "echo")
	if err := destroyed.Destroy(); err != nil {
		t.Fatal(err)
	}
	for want, try := range map[string]func() error{
		`no ikernel "nope"`:  func() error { _, err := a.Create("nope"); return err },
		"datagrams only":     func() error { return create(t, a, "echo").Attach(stream) },
		"use limit, offset,": func() error { return k.Write(map[string]int64{"x": 1}) },
		"no ikernel 2":       destroyed.Destroy,
		"start it with":      func() error { _, err := lambdanic.OpenIkernels("/nonexistent"); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := k.Read(); err != nil {
		t.Error(err)
	}
}

// TestMany makes as many ikernels as an application can have.
func TestMany(t *testing.T) {
	a := open(t, serve(t))
	for range maxIkernels {
		create(t, a, "passthrough")
	}
	if _, err := a.Create("passthrough"); !errors.Is(err, unix.EMFILE) {
		t.Errorf("got %v for one more", err)
	}
}

// TestNothing sends a packet of no bytes with a descriptor. It ends the connection, and the descriptor is closed.
func TestNothing(t *testing.T) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: serve(t), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	rights := unix.UnixRights(int(w.Fd()))
	message := unix.Msghdr{Control: &rights[0]} // which Go's functions send with a byte
	message.SetControllen(len(rights))
	if err := raw.Control(func(fd uintptr) {
		if _, _, errno := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&message)), 0); errno != 0 {
			t.Error(errno)
		}
	}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if all, err := io.ReadAll(r); err != nil || len(all) > 0 { // ends when nobody has the other end
		t.Errorf("got %q, %v", all, err)
	}
}

// TestNonsense sends packets that are no requests. Each is answered, with an error.
func TestNonsense(t *testing.T) {
	path := serve(t)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	file, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	op := func(o wire.Operation, ikernel, more string) string {
		return string([]byte{byte(o), 0, 0, 0}) + ikernel + more
	}
	const first = "\x01\x00\x00\x00"
	for _, c := range []struct {
		packet string
		fds    int
		want   syscall.Errno
	}{
		{op(wire.OperationCreate, "\x00\x00\x00\x00", "echo"), 0, 0},
		{"x", 0, unix.EBADMSG},
		{strings.Repeat("x", wire.MaxPacket+1), 0, unix.EBADMSG},
		{op(99, first, ""), 0, unix.ENOSYS},
		{op(wire.OperationTransact, first, "short"), 0, unix.EBADMSG},
		{op(wire.OperationTransact, first, strings.Repeat("\xff", wire.TransactionLen)), 0, unix.EINVAL},
		{op(wire.OperationAttach, first, ""), 0, unix.EBADMSG},
		{op(wire.OperationAttach, first, ""), 2, unix.EBADMSG},
		{op(wire.OperationAttach, first, ""), 1, unix.ENOTSOCK},
		{op(wire.OperationAttach, first, ""), 64, unix.EBADMSG},
		{op(wire.OperationRings, first, "short"), 0, unix.EBADMSG},
		{op(wire.OperationRings, first, strings.Repeat("\xff", wire.RingsLen)), 0, unix.ENOSYS},
		{op(wire.OperationRings, first, "\x01\x00\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00"), 0, unix.EINVAL},
		{op(wire.OperationRingCounts, first, ""), 0, 0},
		{op(wire.OperationNotes, first, ""), 0, unix.EINVAL},
		{op(wire.OperationDeliver, first, ""), 0, unix.EINVAL},
		{op(wire.OperationFault, first, ""), 0, 0},
		{op(wire.OperationFault, "\xff\xff\xff\xff", ""), 0, unix.ENOENT},
		{op(wire.OperationAttach, "\xff\xff\xff\xff", ""), 1, unix.ENOENT},
	} {
		fds := make([]int, c.fds)
		for i := range fds {
			fds[i] = int(file.Fd())
		}
		if _, _, err := conn.WriteMsgUnix([]byte(c.packet), unix.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
		reply := make([]byte, wire.MaxPacket)
		n, err := conn.Read(reply)
		if err != nil || n < wire.HeaderLen || syscall.Errno(reply[0]) != c.want {
			t.Errorf("%.20q with %d descriptors: got %q, %v, want %v", c.packet, c.fds, reply[:n], err, c.want)
		}
	}
}

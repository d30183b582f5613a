package ikernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// patience is how long a datagram may take.
const patience = 20 * time.Second

// A site is a network namespace with nothing but lo.
type site struct {
	t    testing.TB
	name string
	host *Host
	each *Ikernel // for connections that are accepted, where the kernel lets no listening socket have one
}

func newSite(t testing.TB) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes network namespaces and loads BPF programs: needs root")
	}
	s := &site{t: t, name: fmt.Sprintf("lnik%d", os.Getpid())}
	isolated.Namespace(t, s.name)
	var err error
	if s.host, err = NewHost(demux.New(nil)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.host.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *site) in(f func() error) {
	s.t.Helper()
	if err := veth.InNamed(s.name, f); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) create(name string) *Ikernel {
	s.t.Helper()
	k, err := s.host.Create(name, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// listen makes a server's socket. Without a port, it gets a free one.
func (s *site) listen(address string) *net.UDPConn {
	s.t.Helper()
	var conn net.PacketConn
	s.in(func() (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	s.t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

// share makes a server's socket that lets others have its port.
func (s *site) share(address string) *net.UDPConn {
	s.t.Helper()
	var conn *net.UDPConn
	s.in(func() (err error) {
		conn, err = isolated.ListenShared(s.t.Context(), address)
		return err
	})
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// dial makes a client's socket.
func (s *site) dial(address string) *net.UDPConn {
	s.t.Helper()
	var conn net.Conn
	s.in(func() (err error) {
		conn, err = net.Dial("udp", address)
		return err
	})
	s.t.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

// with calls f with a socket's descriptor.
func with(t testing.TB, conn syscall.Conn, f func(fd int) error) (err error) {
	t.Helper()
	raw, e := conn.SyscallConn()
	if e != nil {
		t.Fatal(e)
	}
	if e := raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		t.Fatal(e)
	}
	return err
}

func attach(t testing.TB, k *Ikernel, conn syscall.Conn) {
	t.Helper()
	if err := with(t, conn, k.Attach); err != nil {
		t.Fatal(err)
	}
}

func send(t testing.TB, conn *net.UDPConn, message string) {
	t.Helper()
	if _, err := io.WriteString(conn, message); err != nil {
		t.Fatal(err)
	}
}

// expect reads a message.
func expect(t *testing.T, what string, conn *net.UDPConn, want string) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, 2000)
	n, _, err := conn.ReadFromUDP(b)
	if got := string(b[:n]); got != want || err != nil {
		t.Errorf("%s: got %q, %v, want %q", what, got, err, want)
	}
}

// named are an ikernel's registers by their names.
type named map[string]uint64

// transact runs a transaction with registers by their names.
func transact(k *Ikernel, expect, write named) (named, error) {
	var t Transaction
	for i, r := range k.Registers() {
		if v, ok := expect[r.Name]; ok {
			t.Expect |= 1 << i
			t.Expected[i] = v
		}
		if v, ok := write[r.Name]; ok {
			t.Write |= 1 << i
			t.Values[i] = v
		}
	}
	values, err := k.Transact(&t)
	if err != nil {
		return nil, err
	}
	all := named{}
	for i, r := range k.Registers() {
		all[r.Name] = values[i]
	}
	return all, nil
}

func registers(t testing.TB, k *Ikernel) named {
	t.Helper()
	values, err := transact(k, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestEcho attaches echo to sockets of each kind: it answers for them, and the registers stay when it is detached and attached again.
func TestEcho(t *testing.T) {
	for _, c := range []struct{ listen, dial string }{
		{"127.0.0.1:0", "127.0.0.1"}, {"[::1]:0", "[::1]"}, {"0.0.0.0:0", "127.0.0.1"}, {"[::]:0", "[::1]"}, {"[::]:0", "127.0.0.1"},
	} {
		t.Run(c.listen+" by "+c.dial, func(t *testing.T) {
			s := newSite(t)
			k, server := s.create("echo"), s.listen(c.listen)
			client := s.dial(fmt.Sprintf("%s:%d", c.dial, server.LocalAddr().(*net.UDPAddr).Port))
			send(t, client, "before")
			expect(t, "the server", server, "before")
			attach(t, k, server)
			for _, m := range []string{"one", strings.Repeat("x", 1400)} {
				send(t, client, m)
				expect(t, "the client", client, m)
			}
			if err := with(t, server, k.Detach); err != nil {
				t.Fatal(err)
			}
			send(t, client, "after")
			expect(t, "the server, which got nothing else", server, "after")
			attach(t, k, server)
			send(t, client, "again")
			expect(t, "the client", client, "again")
			if r := registers(t, k); r["messages"] != 3 || r["bytes"] != 3+1400+5 {
				t.Errorf("the registers are %v", r)
			}
		})
	}
}

// TestConnected attaches a socket that is connected to one client: others of its port are not served.
func TestConnected(t *testing.T) {
	s := newSite(t)
	k, first, second := s.create("echo"), s.dial("127.0.0.1:1"), s.dial("127.0.0.1:1")
	port := first.LocalAddr().(*net.UDPAddr).Port
	server := s.dial(fmt.Sprintf("127.0.0.1:%d", port))
	_ = second.Close()
	attach(t, k, server)
	local := server.LocalAddr().(*net.UDPAddr)
	other := s.listen("127.0.0.1:0")
	if _, err := first.WriteToUDP([]byte("x"), local); err == nil {
		t.Error("a connected socket sends to another address")
	}
	if _, err := other.WriteToUDP([]byte("x"), local); err != nil {
		t.Fatal(err)
	}
	if _, err := s.listen("127.0.0.1:0").WriteTo([]byte("the first"), other.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	expect(t, "one to whom the server's socket is not connected", other, "the first")
	if r := registers(t, k); r["messages"] != 0 {
		t.Errorf("the registers are %v", r)
	}
	_ = first.Close()
	client := s.listen(fmt.Sprintf("127.0.0.1:%d", port))
	if _, err := client.WriteToUDP([]byte("x"), local); err != nil {
		t.Fatal(err)
	}
	expect(t, "the client", client, "x")
}

// TestWildcard attaches a socket that is bound to no address, and one of its port is bound to an address later: it gets its own datagrams.
func TestWildcard(t *testing.T) {
	s := newSite(t)
	k, all := s.create("echo"), s.share("0.0.0.0:0")
	attach(t, k, all)
	address := fmt.Sprintf("127.0.0.1:%d", all.LocalAddr().(*net.UDPAddr).Port)
	client := s.dial(address)
	send(t, client, "one")
	expect(t, "the client", client, "one")
	bound := s.share(address)
	send(t, client, "two")
	expect(t, "the socket that is bound to the address", bound, "two")
	attach(t, k, bound)
	send(t, client, "three")
	expect(t, "the client", client, "three")
	if err := with(t, all, k.Detach); err != nil {
		t.Fatal(err)
	}
	send(t, client, "four")
	expect(t, "the client", client, "four")
}

// TestClose closes sockets: the ikernel gets no more of the datagrams to their port, even at once, and keeps its state.
func TestClose(t *testing.T) {
	s := newSite(t)
	k, server := s.create("echo"), s.listen("127.0.0.1:0")
	attach(t, k, server)
	address := server.LocalAddr().String()
	client := s.dial(address)
	send(t, client, "one")
	expect(t, "the client", client, "one")
	_ = server.Close()
	next := s.listen(address)
	send(t, client, "two")
	expect(t, "the next server", next, "two")

	other := s.create("echo") // gets the port, too
	attach(t, other, next)
	send(t, client, "three")
	expect(t, "the client", client, "three")
	if mine, its := registers(t, k), registers(t, other); mine["messages"] != 1 || its["messages"] != 1 {
		t.Errorf("the registers are %v and %v", mine, its)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	send(t, client, "four")
	expect(t, "the next server", next, "four")
	if err := with(t, next, other.Attach); !errors.Is(err, errDestroyed) {
		t.Errorf("got %v for an ikernel that is destroyed", err)
	}
}

// TestThreshold compares with the same in Go.
func TestThreshold(t *testing.T) {
	const messages = 2000
	s := newSite(t)
	k, server := s.create("threshold"), s.listen("127.0.0.1:0")
	limit := int64(-1 << 29)
	if _, err := transact(k, nil, named{"limit": uint64(limit), "offset": 14}); err != nil {
		t.Fatal(err)
	}
	attach(t, k, server)
	client, rnd := s.dial(server.LocalAddr().String()), rand.New(rand.NewPCG(1, 2))
	var sum, alerts int64
	for range messages {
		m := make([]byte, 18)
		value := int32(rnd.Uint32())
		binary.BigEndian.PutUint32(m[14:], uint32(value))
		send(t, client, string(m))
		sum += int64(value)
		if int64(value) > limit {
			alerts++
			expect(t, "the server", server, string(m))
		}
	}
	send(t, client, "short")
	expect(t, "the server", server, "short")
	want := named{"limit": uint64(limit), "offset": 14, "sum": uint64(sum), "count": messages, "alerts": uint64(alerts)}
	if r := registers(t, k); fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("the registers are %v, want %v", r, want)
	}
}

// TestTransactions reads two registers while messages change both, and moves amounts between two others from several sides: none is seen half done.
func TestTransactions(t *testing.T) {
	const rounds = 2000
	s := newSite(t)
	k, server := s.create("threshold"), s.listen("127.0.0.1:0")
	if _, err := transact(k, nil, named{"limit": 1 << 40}); err != nil {
		t.Fatal(err)
	}
	attach(t, k, server)
	client := s.dial(server.LocalAddr().String())
	bank := s.create("echo")
	if _, err := transact(bank, nil, named{"messages": 3 * rounds}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for range rounds {
			_, _ = client.Write([]byte{0, 0, 0, 1})
		}
	})
	all.Go(func() {
		for range rounds {
			if r, err := transact(k, nil, nil); err != nil || r["sum"] != r["count"] {
				t.Errorf("got %v, %v, want sum and count alike", r, err)
			}
		}
	})
	for range 2 {
		all.Go(func() {
			for range rounds {
				move(t, bank)
			}
		})
	}
	all.Wait()
	if r := registers(t, k); r["count"] != rounds {
		t.Errorf("the registers are %v", r)
	}
	if r := registers(t, bank); r["messages"] != rounds || r["bytes"] != 2*rounds {
		t.Errorf("the registers are %v", r)
	}
}

// move moves 1 from one register to another.
func move(t *testing.T, k *Ikernel) {
	for {
		r, err := transact(k, nil, nil)
		if err != nil {
			t.Error(err)
			return
		}
		_, err = transact(k, r, named{"messages": r["messages"] - 1, "bytes": r["bytes"] + 1})
		if err == nil {
			return
		}
		if !errors.Is(err, ErrDiffers) {
			t.Error(err)
			return
		}
	}
}

// TestRefuses asks for what cannot be.
func TestRefuses(t *testing.T) {
	s := newSite(t)
	k, server := s.create("passthrough"), s.listen("127.0.0.1:0")
	attach(t, k, server)
	unix, err := net.ListenPacket("unixgram", t.TempDir()+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	raw, err := unix.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for want, try := range map[string]func() error{
		"the socket has the ikernel":   func() error { return with(t, server, k.Attach) },
		"not attached to this ikernel": func() error { return with(t, server, s.create("echo").Detach) },
		"bad file descriptor":          func() error { return k.Attach(-1) },
		"has 1 registers":              func() error { _, err := k.Transact(&Transaction{Write: 2}); return err },
		`no ikernel "nope": use coal`:  func() error { _, err := s.host.Create("nope", nil); return err },
		"only UDP and TCP sockets": func() (err error) {
			_ = raw.Control(func(fd uintptr) { err = k.Attach(int(fd)) })
			return err
		},
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	client := s.dial(server.LocalAddr().String())
	send(t, client, "x")
	expect(t, "the server", server, "x")
	if r := registers(t, k); r["messages"] != 1 {
		t.Errorf("the registers are %v", r)
	}
}

// Package isolated starts a memcached in a network namespace of its own, where its clients are, too.
package isolated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/memcached"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// patience is how long the server may take to answer.
const patience = 20 * time.Second

var loopback = netip.MustParseAddr("127.0.0.1")

// Server is a memcached.
type Server struct {
	*memcached.Server
	Netns string // where its clients are
	addr  netip.Addr
	t     testing.TB
}

// New starts one at 127.0.0.1 of a namespace of its own, which goes with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, Netns: fmt.Sprintf("lniso%d", os.Getpid()), addr: loopback}
	Namespace(t, s.Netns)
	s.in(s.start)
	return s
}

// Port is where the servers of tenants are, memcached's usual one.
const Port = 11211

// Tenant starts a small server at 127.0.0.1 and Port of a namespace of its own. Tenants have different numbers.
func Tenant(t testing.TB, number int) *Server {
	t.Helper()
	s := &Server{t: t, Netns: fmt.Sprintf("lniso%d-%d", os.Getpid(), number), addr: loopback}
	Namespace(t, s.Netns)
	s.in(func() (err error) {
		s.Server, err = memcached.StartAt(context.Background(), Port, []netip.Addr{s.addr}, "-t", "1", "-m", "8", "-c", "64")
		return err
	})
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// Namespace makes a network namespace in which lo is up, and which goes with the test.
func Namespace(t testing.TB, name string) netns.NsHandle {
	t.Helper()
	ns, err := veth.NewNamespace(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(ns.Close(), veth.RemoveNamespace(name)); err != nil {
			t.Error(err)
		}
	})
	return ns
}

// Beside starts another server in the same namespace.
func (s *Server) Beside() *Server {
	s.t.Helper()
	other := &Server{t: s.t, Netns: s.Netns, addr: s.addr}
	s.in(other.start)
	return other
}

// Far starts a server at an address of the thread's namespace. Its clients are in another one.
func Far(t testing.TB, addr netip.Addr, clients string) *Server {
	t.Helper()
	s := &Server{t: t, Netns: clients, addr: addr}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Server) start() (err error) {
	if s.Server, err = memcached.Start(context.Background(), []netip.Addr{s.addr}); err == nil {
		s.t.Cleanup(func() { _ = s.Stop() })
	}
	return err
}

// in runs f in the namespace.
func (s *Server) in(f func() error) {
	s.t.Helper()
	if err := veth.InNamed(s.Netns, f); err != nil {
		s.t.Fatal(err)
	}
}

// StartAgain starts the server again. Then it has no values.
func (s *Server) StartAgain() {
	s.t.Helper()
	s.in(func() error { return s.Restart(context.Background()) })
}

// Set stores a value by TCP.
func (s *Server) Set(key, value string) {
	s.t.Helper()
	s.exchange("tcp", fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value), "STORED\r\n")
}

// Get checks that a GET by UDP is answered with the value.
func (s *Server) Get(key, value string) {
	s.t.Helper()
	const frame = "\x00\x01\x00\x00\x00\x01\x00\x00"
	s.exchange("udp", frame+"get "+key+"\r\n", fmt.Sprintf(frame+"VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value))
}

// Ask sends a GET by UDP, and does not wait for an answer.
func (s *Server) Ask(key string) {
	s.t.Helper()
	s.in(func() error {
		conn, err := net.Dial("udp", netip.AddrPortFrom(s.addr, s.Port).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = io.WriteString(conn, "\x00\x01\x00\x00\x00\x01\x00\x00get "+key+"\r\n")
		return err
	})
}

func (s *Server) exchange(network, request, want string) {
	s.t.Helper()
	s.in(func() error {
		conn, err := net.Dial(network, netip.AddrPortFrom(s.addr, s.Port).String())
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, request); err != nil {
			return err
		}
		reply := make([]byte, 2000)
		n, err := conn.Read(reply)
		if err == nil && string(reply[:n]) != want {
			err = fmt.Errorf("%q is answered by %q, want %q", request, reply[:n], want)
		}
		return err
	})
}

// ListenShared makes a socket of UDP over IPv4 that lets other such sockets have its port, at the same address or a narrower one.
func ListenShared(ctx context.Context, address string) (*net.UDPConn, error) {
	share := func(_, _ string, raw syscall.RawConn) (err error) {
		if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }); e != nil {
			return e
		}
		return err
	}
	conn, err := (&net.ListenConfig{Control: share}).ListenPacket(ctx, "udp4", address)
	if err != nil {
		return nil, fmt.Errorf("listen at %s beside others: %w", address, err)
	}
	return conn.(*net.UDPConn), nil
}

package ikernels

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/ikernels/sourcefilter"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// TestSocketChain has a message go through two ikernels, each with registers of its own, whichever is detached first.
func TestSocketChain(t *testing.T) {
	for name, detachFirst := range map[string]bool{"the first goes": true, "the second goes": false} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			server := s.listen("127.0.0.1:0")
			client := s.dial(server.LocalAddr().String())
			first, second := s.create("passthrough"), s.create("echo")
			attach(t, first, server)
			send(t, client, "a")
			expect(t, "the server", server, "a")
			attach(t, second, server)
			send(t, client, "b")
			expect(t, "the client", client, "b")
			check := func(when string, of1, of2 uint64) {
				t.Helper()
				if got1, got2 := registers(t, first)["messages"], registers(t, second)["messages"]; got1 != of1 || got2 != of2 {
					t.Errorf("%s: %d and %d messages are counted, want %d and %d", when, got1, got2, of1, of2)
				}
			}
			check("with both", 2, 1)
			if detachFirst {
				if err := with(t, server, first.Detach); err != nil {
					t.Fatal(err)
				}
				send(t, client, "c")
				expect(t, "the client", client, "c")
				check("without the first", 2, 2)
				attach(t, first, server) // behind echo, which answers all
				send(t, client, "d")
				expect(t, "the client", client, "d")
				check("with the first as the second", 2, 3)
				return
			}
			if err := second.Close(); err != nil {
				t.Fatal(err)
			}
			send(t, client, "c")
			expect(t, "the server", server, "c")
			if got := registers(t, first)["messages"]; got != 3 {
				t.Errorf("%d messages are counted, want 3", got)
			}
		})
	}
}

// TestChainOfThree has heavy-hitters count what threshold then drops or passes on to passthrough.
func TestChainOfThree(t *testing.T) {
	s := newSite(t)
	server := s.listen("127.0.0.1:0")
	client := s.dial(server.LocalAddr().String())
	hitters, limit, last := s.create("heavy-hitters"), s.create("threshold"), s.create("passthrough")
	for _, k := range []*Ikernel{hitters, limit, last} {
		attach(t, k, server)
	}
	if _, err := transact(limit, nil, named{"limit": 5}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []byte{7, 3, 9} {
		message := string([]byte{0, 0, 0, n})
		send(t, client, message)
		if n > 5 {
			expect(t, "the server", server, message)
		}
	}
	if l, p := registers(t, limit), registers(t, last); l["count"] != 3 || l["sum"] != 19 || p["messages"] != 2 {
		t.Errorf("the registers are %v and %v", l, p)
	}
	if n := passed(t, hitters); n != 3 {
		t.Errorf("heavy-hitters passed %d messages on, want 3", n)
	}
}

// passed says how many messages an ikernel has passed on.
func passed(t *testing.T, k *Ikernel) (n uint64) {
	t.Helper()
	var cpus [][echoIkVerdictIK_VERDICTS]uint64
	if err := k.coll.Maps["ik_counters"].Lookup(uint32(0), &cpus); err != nil {
		t.Fatal(err)
	}
	for _, cpu := range cpus {
		n += cpu[echoIkVerdictIK_PASS]
	}
	return n
}

// TestChainOfAddresses has ikernels of sockets with one port and different addresses: each gets its own socket's messages alone.
func TestChainOfAddresses(t *testing.T) {
	s := newSite(t)
	one := s.listen("127.0.0.1:0")
	_, port, _ := net.SplitHostPort(one.LocalAddr().String())
	two := s.listen("[::1]:" + port)
	k, l := s.create("echo"), s.create("passthrough")
	attach(t, l, one)
	attach(t, k, two)
	client := s.dial(two.LocalAddr().String())
	send(t, client, "x")
	expect(t, "its client", client, "x")
	send(t, s.dial(one.LocalAddr().String()), "y")
	expect(t, "the other server", one, "y")
	if a, b := registers(t, k)["messages"], registers(t, l)["messages"]; a != 1 || b != 1 {
		t.Errorf("%d and %d messages are counted, want 1 each", a, b)
	}
	if err := one.Close(); err != nil { // the ikernel that it had stays in the chain, and passes all on
		t.Fatal(err)
	}
	send(t, client, "z")
	expect(t, "its client", client, "z")
}

// TestChainOfSharers has sockets that share an address, of which two ikernels cannot have one each.
func TestChainOfSharers(t *testing.T) {
	s := newSite(t)
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	}}
	listen := func(address string) (conn *net.UDPConn) {
		if err := veth.InNamed(s.name, func() error {
			c, err := config.ListenPacket(context.Background(), "udp", address)
			if err == nil {
				conn = c.(*net.UDPConn)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	one := listen("127.0.0.1:0")
	two := listen(one.LocalAddr().String())
	_, port, _ := net.SplitHostPort(one.LocalAddr().String())
	k, l := s.create("passthrough"), s.create("echo")
	attach(t, k, one)
	if err := with(t, two, l.Attach); err == nil || !strings.Contains(err.Error(), "attach it to all of them first") {
		t.Errorf("got %v for another ikernel of a socket at the same address", err)
	}
	attach(t, l, listen("0.0.0.0:"+port)) // which gets none of their datagrams
	attach(t, k, two)
	attach(t, l, two)
	attach(t, l, one)
	client := s.dial(one.LocalAddr().String())
	send(t, client, "x")
	expect(t, "the client", client, "x")
}

// TestFilterBeforeSocket has what the operator attaches to the port come before the application's ikernel, which was there before.
func TestFilterBeforeSocket(t *testing.T) {
	s := newSite(t)
	server := s.listen("127.0.0.1:0")
	k := s.create("echo")
	attach(t, k, server)
	var filter *sourcefilter.Filter
	s.in(func() (err error) {
		filter, err = sourcefilter.Attach(sourcefilter.Options{
			Server: demux.Server{Port: uint16(server.LocalAddr().(*net.UDPAddr).Port), Demux: s.host.demux},
			Allow:  []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")},
		})
		return err
	})
	if i, n := filter.Attachment().Position(); i != 1 || n != 2 {
		t.Errorf("the filter is %d of %d", i, n)
	}
	refused, allowed := s.dial(server.LocalAddr().String()), s.dialFrom("127.0.0.2", server)
	send(t, refused, "a")
	send(t, allowed, "b")
	expect(t, "who is allowed", allowed, "b")
	if n := registers(t, k)["messages"]; n != 1 {
		t.Errorf("%d messages are counted, want 1", n)
	}
	if err := filter.Close(); err != nil {
		t.Fatal(err)
	}
	send(t, refused, "c")
	expect(t, "who was refused", refused, "c")
}

// dialFrom makes a client's socket at an address.
func (s *site) dialFrom(from string, to *net.UDPConn) (conn *net.UDPConn) {
	s.t.Helper()
	s.in(func() (err error) {
		conn, err = net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(from)}, to.LocalAddr().(*net.UDPAddr))
		return err
	})
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

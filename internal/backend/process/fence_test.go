package process

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// The ways out of test/lambdas/escape.c.
const (
	waySend      = 3
	waySendByNew = 4
	wayOpen      = 5
)

// try has the lambda escape try a way out to an address, or by a socket of a kind: domain, type and protocol.
func (c *rawClient) try(way uint32, to netip.AddrPort, kind ...uint16) error {
	c.t.Helper()
	addr := to.Addr().As16()
	p := append(make([]byte, 4), addr[:]...)
	p = binary.BigEndian.AppendUint16(p, to.Port())
	for _, k := range append(kind, 0, 0, 0)[:3] {
		p = binary.LittleEndian.AppendUint16(p, k)
	}
	h, answer := c.call(workload, way, p, 0)
	if h.Type != api.TypeResponse {
		c.t.Fatalf("way %d: got %+v", way, h)
	}
	if code := syscall.Errno(binary.LittleEndian.Uint32(answer)); code != 0 {
		return code
	}
	return nil
}

// stranger is a socket at an address of its own.
func stranger(t *testing.T, host netip.Addr) (*net.UDPConn, netip.AddrPort) {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(host, 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// fenced deploys the lambda escape at a loopback address, with services.
func fenced(t *testing.T, host netip.Addr, services ...netip.AddrPort) (*Backend, backend.Deployment, *rawClient) {
	t.Helper()
	b := newBackend(t, plainHost, shortdir.New(t))
	if os.Geteuid() != 0 || b.groups == "" {
		t.Skip("needs root and a writable cgroup v2")
	}
	b.cfg.Listen = func(uint32) (netip.AddrPort, error) {
		conn, addr := stranger(t, host)
		return addr, conn.Close()
	}
	d := deployment(workload, 1, api.ModePacket, fixture(t, "escape"))
	d.Layouts = api.Layouts{}
	d = calling(d, services...)
	return b, d, dial(t, mustDeploy(t, b, d))
}

// calling gives a deployment services.
func calling(d backend.Deployment, services ...netip.AddrPort) backend.Deployment {
	d.Services = nil
	for _, s := range services {
		d.Services = append(d.Services, serviceAt(s))
	}
	return d
}

var loopbacks = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}

// Native code, with all system calls that it has, sends datagrams to none but those who sent it one.
func TestSendsToClientsAlone(t *testing.T) {
	for _, host := range loopbacks {
		b, _, c := fenced(t, host)
		conn, addr := stranger(t, host)
		if err := c.try(waySend, addr); err != unix.EPERM {
			t.Errorf("to a stranger at %s: %v, want %v", addr, err, unix.EPERM)
		}
		// Once the stranger has sent anything, it is a client.
		endpoint, _ := b.Endpoint(workload)
		if _, err := conn.WriteToUDPAddrPort([]byte("anything"), endpoint); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the stranger is known", func() bool { return c.try(waySend, addr) == nil })
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		var got [8]byte
		if n, err := conn.Read(got[:]); string(got[:n]) != "out" {
			t.Errorf("the stranger got %q, %v", got[:n], err)
		}
	}
}

// A client stays one when the function gets services, for which it needs another process.
func TestFenceStays(t *testing.T) {
	host := loopbacks[0]
	b, d, c := fenced(t, host)
	conn, addr := stranger(t, host)
	_, service := stranger(t, host)
	endpoint, _ := b.Endpoint(workload)
	if _, err := conn.WriteToUDPAddrPort([]byte("anything"), endpoint); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stranger is known", func() bool { return c.try(waySend, addr) == nil })
	d.Revision++
	mustDeploy(t, b, calling(d, service))
	for _, to := range []netip.AddrPort{addr, service} {
		if err := c.try(waySend, to); err != nil {
			t.Errorf("to %s after the update: %v", to, err)
		}
	}
}

// A function sends to its services alone: to those of the revision that serves, whatever it could call before, and also after its process died.
func TestCallsServicesAlone(t *testing.T) {
	for _, host := range loopbacks {
		_, first := stranger(t, host)
		_, second := stranger(t, host)
		b, d, c := fenced(t, host, first)
		want := func(when string, allowed, refused netip.AddrPort) {
			t.Helper()
			for _, way := range []uint32{waySendByNew, waySend} {
				if err := c.try(way, allowed); err != nil {
					t.Errorf("%s: way %d to its service: %v", when, way, err)
				}
				if err := c.try(way, refused); err != unix.EPERM {
					t.Errorf("%s: way %d to another: %v, want %v", when, way, err, unix.EPERM)
				}
			}
		}
		want("at first", first, second)
		d.Revision++
		mustDeploy(t, b, calling(d, second))
		want("with another service", second, first)
		pid := pidOf(t, b, workload)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it serves again", func() bool {
			list, err := b.Status(t.Context())
			return err == nil && len(list) == 1 && list[0].Endpoint.IsValid() && pidOf(t, b, workload) != pid
		})
		want("after its death", second, first)
	}
}

// The sockets that a function with services may open are for UDP.
func TestOpensSocketsForUDPAlone(t *testing.T) {
	_, service := stranger(t, loopbacks[0])
	_, _, c := fenced(t, loopbacks[0], service)
	for _, kind := range [][3]uint16{
		{unix.AF_INET, unix.SOCK_STREAM, 0},
		{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP},
		{unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
		{unix.AF_UNIX, unix.SOCK_DGRAM, 0},
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE},
		{unix.AF_PACKET, unix.SOCK_RAW, 0},
		{unix.AF_ALG, unix.SOCK_SEQPACKET, 0},
	} {
		if err := c.try(wayOpen, service, kind[0], kind[1], kind[2]); err != unix.EPERM {
			t.Errorf("a socket of kind %v: %v, want %v", kind, err, unix.EPERM)
		}
	}
}

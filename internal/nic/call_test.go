package nic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// What the tests of external calls share. The lambda is the bundled kv_client.

const (
	kvWorkload = 0x70007
	methodGet  = 0
	methodSet  = 1
	patience   = time.Minute // for events that must happen, however busy the machine
	longest    = time.Minute // a time-out that no test sees, and lambda-host's longest
)

var pacerBinary = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("make", "-C", "../../host", "../build/pacer").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build pacer: %w\n%s", err, out)
	}
	return filepath.Abs("../../build/pacer")
})

// pacedConfig is one of an instance with a pacer.
func pacedConfig(t testing.TB) Config {
	t.Helper()
	c := testConfig(t)
	binary, err := pacerBinary()
	if err != nil {
		t.Fatal(err)
	}
	c.PacerBinary = binary
	return c
}

// kvRevision is a revision of kv_client whose memcached is at service.
func kvRevision(t testing.TB, revision uint32, service netip.AddrPort, timeout time.Duration) backend.Deployment {
	t.Helper()
	d := withService(bundled(t, "kv_client", kvWorkload, revision), service)
	d.Services[0].Timeout = api.Duration(timeout)
	return d
}

// hostAddr6 is the IPv6 address of the host's end (virtual.addr6).
func hostAddr6(n *NIC) netip.Addr {
	a := n.Addr6().As16()
	a[15] = 1
	return netip.AddrFrom16(a)
}

// kvConn speaks λ-RPC to the NIC, one datagram per request and no resends.
type kvConn struct {
	t    testing.TB
	conn *net.UDPConn
	next uint64
}

func dialNIC(t testing.TB, nic netip.AddrPort) *kvConn {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(nic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &kvConn{t: t, conn: conn}
}

// send sends a request with room for that many bytes of reply, and returns its ID.
func (c *kvConn) send(method uint32, body []byte, room int) uint64 {
	c.t.Helper()
	c.next++
	h := api.Header{
		Type: api.TypeRequest, Length: uint16(len(body)), Workload: kvWorkload, Request: c.next, Count: 1,
		MessageLen: uint32(len(body)), Method: method,
	}
	packet := append(h.Append(nil), body...)
	if len(body) < room {
		packet = append(packet, make([]byte, room-len(body))...)
	}
	if _, err := c.conn.Write(packet); err != nil {
		c.t.Fatal(err)
	}
	return h.Request
}

func (c *kvConn) receive() (api.Header, []byte) {
	c.t.Helper()
	buf := make([]byte, 2048)
	_ = c.conn.SetReadDeadline(time.Now().Add(patience))
	n, err := c.conn.Read(buf)
	if err != nil {
		c.t.Fatalf("no answer: %v", err)
	}
	h, body, err := api.ParsePacket(buf[:n])
	if err != nil {
		c.t.Fatal(err)
	}
	return h, body
}

func (c *kvConn) call(method uint32, body []byte, room int) (api.Header, []byte) {
	c.t.Helper()
	id := c.send(method, body, room)
	h, answer := c.receive()
	if h.Request != id || h.Workload != kvWorkload || h.Method != method {
		c.t.Fatalf("request %d was answered with %+v", id, h)
	}
	return h, answer
}

// get and set expect a response, not an error, and give its status and bytes.
func (c *kvConn) get(key string) (api.Status, string) {
	c.t.Helper()
	return c.response(methodGet, []byte(key))
}

func (c *kvConn) set(key, value string) (api.Status, string) {
	c.t.Helper()
	return c.response(methodSet, append([]byte{byte(len(key))}, key+value...))
}

func (c *kvConn) response(method uint32, body []byte) (api.Status, string) {
	c.t.Helper()
	h, answer := c.call(method, body, api.RPCMaxPayload)
	if h.Type != api.TypeResponse {
		c.t.Fatalf("%d-byte request: error %d", len(body), h.Code)
	}
	return api.Status(h.Code), string(answer)
}

// expectError receives the answer to a request, which must be an error with that code.
func (c *kvConn) expectError(id uint64, code api.Code) api.Header {
	c.t.Helper()
	h, _ := c.receive()
	if h.Request != id || h.Type != api.TypeError || api.Code(h.Code) != code {
		c.t.Fatalf("request %d: got %+v, want error %d", id, h, code)
	}
	return h
}

// counted is the NIC's counter of that name, which must be there.
func counted(t testing.TB, n *NIC, name string) uint64 {
	t.Helper()
	all, err := n.Counters()
	i := slices.IndexFunc(all, func(c backend.Counter) bool { return c.Name == name })
	if err != nil || i < 0 {
		t.Fatalf("the NIC has no counter %s: %v", name, err)
	}
	return all[i].Value
}

// fakeService is a UDP socket where kv_client expects memcached.
type fakeService struct {
	t    testing.TB
	conn *net.UDPConn
}

func newFake(t testing.TB, addr netip.Addr) *fakeService {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &fakeService{t: t, conn: conn}
}

func (f *fakeService) addr() netip.AddrPort { return f.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// A question is what the NIC sent to the service: from which port, under which ID, and the bytes behind the frame header.
type question struct {
	from netip.AddrPort
	id   uint16
	text string
}

func (f *fakeService) receive() question {
	f.t.Helper()
	buf := make([]byte, 2048)
	_ = f.conn.SetReadDeadline(time.Now().Add(patience))
	n, from, err := f.conn.ReadFromUDPAddrPort(buf)
	if err != nil || n < 8 {
		f.t.Fatalf("the service got %d bytes: %v", n, err)
	}
	return question{from: from, id: binary.BigEndian.Uint16(buf), text: string(buf[8:n])}
}

// answer replies with datagram sequence of total.
func (f *fakeService) answer(q question, sequence, total uint16, text string) {
	f.t.Helper()
	if _, err := f.conn.WriteToUDPAddrPort(frame(q.id, sequence, total, text), q.from); err != nil {
		f.t.Fatal(err)
	}
}

// frame puts memcached's UDP frame header before a text (memcached, doc/protocol.txt, "UDP protocol").
func frame(id, sequence, total uint16, text string) []byte {
	b := binary.BigEndian.AppendUint16(nil, id)
	b = binary.BigEndian.AppendUint16(b, sequence)
	b = binary.BigEndian.AppendUint16(b, total)
	return append(append(b, 0, 0), text...)
}

// value is memcached's answer to a get that hits.
func value(key, data string) string {
	return fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(data), data)
}

// bigBuffers lets a socket hold the answers to many requests at once.
func bigBuffers(t testing.TB, conn syscall.Conn) {
	t.Helper()
	raw, err := conn.SyscallConn()
	if err == nil {
		var e error
		err = raw.Control(func(fd uintptr) {
			e = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20))
		})
		err = errors.Join(err, e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

package nic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// Tests of external calls, with the bundled kv_client: this file has what they share.

const (
	kvWorkload = 7
	methodGet  = 0
	methodSet  = 1
	patience   = 20 * time.Second // for what must happen, however busy the machine
)

var kvClient = sync.OnceValues(func() (*compiler.Artifact, error) {
	return compiler.Build(context.Background(), "../../lambdas/kv_client", compiler.Options{})
})

var pacerBinary = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return "", err
	}
	if out, err := exec.Command("make", "-C", filepath.Join(root, "host"), "../build/pacer").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build pacer: %w\n%s", err, out)
	}
	return filepath.Join(root, "build", "pacer"), nil
})

var callInstances atomic.Int32

// callConfig describes a NIC of the test's own, which is taken down when the test ends.
func callConfig(t *testing.T) Config {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs and makes interfaces: needs root")
	}
	binary, err := pacerBinary()
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Instance: fmt.Sprintf("c%05d-%d", os.Getpid()%100000, callInstances.Add(1)), RunDir: t.TempDir(), Slots: 16,
		UnknownError: true, PacerBinary: binary, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	t.Cleanup(func() {
		if err := Down(context.Background(), c); err != nil {
			t.Errorf("take the NIC down: %v", err)
		}
	})
	return c
}

func callNIC(t *testing.T) *NIC {
	t.Helper()
	n, err := Up(t.Context(), callConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// deployKV deploys a revision of kv_client whose memcached is at service.
func deployKV(t *testing.T, n *NIC, revision uint32, service netip.AddrPort, timeout time.Duration) {
	t.Helper()
	a, err := kvClient()
	if err != nil {
		t.Fatal(err)
	}
	err = n.Deploy(t.Context(), backend.Deployment{
		Namespace: "test", Name: "kv_client", Workload: kvWorkload, Revision: revision, Spec: a.Manifest.Spec, BPF: a.BPF,
		Services: []backend.Service{{Name: "memcached", Protocol: "memcached", Addr: service, Timeout: api.Duration(timeout)}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kvClientConn speaks λ-RPC to the NIC, one datagram per request and no resends.
type kvConn struct {
	t    *testing.T
	conn *net.UDPConn
	next uint64
}

func dialNIC(t *testing.T, nic netip.AddrPort) *kvConn {
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

// expect receives the answer to a request and checks that it is an error with that code.
func (c *kvConn) expectError(id uint64, code api.Code) api.Header {
	c.t.Helper()
	h, _ := c.receive()
	if h.Request != id || h.Type != api.TypeError || api.Code(h.Code) != code {
		c.t.Fatalf("request %d: got %+v, want error %d", id, h, code)
	}
	return h
}

// poll tries until check finds nothing wrong, or patience ends.
func pollCall(t *testing.T, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting until %s: %v", what, err)
		}
	}
}

// counters reads the NIC's counters, which must be there.
func counters(t *testing.T, n *NIC) Counters {
	t.Helper()
	c, err := n.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// fakeService is a UDP socket where kv_client expects memcached.
type fakeService struct {
	t    *testing.T
	conn *net.UDPConn
}

func newFake(t *testing.T, addr netip.Addr) *fakeService {
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

// bigBuffers lets a socket hold what many requests bring at once.
func bigBuffers(t *testing.T, conn syscall.Conn) {
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

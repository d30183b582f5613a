package process

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/freeport"
)

// patience is for hangs only: no test depends on how long anything takes on a busy machine.
const patience = time.Minute

// Built once: lambda-host as it is delivered and with sanitizers.
var plainHost, checkedHost string

func TestMain(m *testing.M) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	out, err := exec.Command("make", "-C", filepath.Join(root, "host"), "all", "asan", "fuzz").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "build lambda-host: %v\n%s", err, out)
		os.Exit(1)
	}
	plainHost = filepath.Join(root, "build", "lambda-host")
	checkedHost = filepath.Join(root, "build", "lambda-host-asan")
	controlTimeout, startLimit = patience, patience
	os.Exit(m.Run())
}

// fixture compiles test/lambdas/NAME.c for the host, as the compiler does, with more definitions.
func fixture(t testing.TB, name string, defines ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	unit := filepath.Join(dir, "unit.c")
	text := fmt.Sprintf("#define LAMBDA_ENTRY %[1]s\n#define LAMBDA_IN_FLIGHT 4\n#include \"lambda.h\"\n"+
		"static int %[1]s(EXTRACTED_HEADERS_T *, MATCH_DATA_T *);\n#include \"%[1]s.c\"\n#include \"lambda_entry.h\"\n", name)
	if err := os.WriteFile(unit, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	object := filepath.Join(dir, "unit.so")
	args := []string{"-std=gnu17", "-O2", "-shared", "-nostdlib", "-fPIC", "-fwrapv", "-Wl,-T,../../../sdk/lambda.ld", "-I../../../sdk", "-I../../../bpf",
		"-I../../../test/lambdas", "-fuse-ld=lld", "-T", "../../../sdk/lambda.ld", "-o", object, unit, "-lc"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if out, err := exec.Command("clang-19", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", name, err, out)
	}
	native, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	return native
}

// deployment has the longest limits, so that only tests that set others reach them.
func deployment(workload, revision uint32, mode api.MessageMode, native []byte) backend.Deployment {
	spec := api.Spec{Name: "fixture", Message: api.MessageSpec{Mode: mode}, Limits: api.LimitsSpec{Time: api.Duration(time.Second)}}
	if mode != api.ModePacket {
		spec.Message.InFlight, spec.Message.Timeout = 4, api.Duration(patience)
	}
	d := backend.Deployment{
		Namespace: "test", Name: "fixture", Workload: workload, Revision: revision, Spec: spec.Default(), Native: native,
	}
	if mode == api.ModePacket {
		d.Layouts.Kept = "the counter of packet.c" // as the compiler would name it
	}
	return d
}

// newBackend makes a backend whose processes end with the test.
func newBackend(t testing.TB, host, dir string) *Backend {
	t.Helper()
	b, err := New(Config{
		HostBinary: host, RunDir: dir, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Listen: freeport.UDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := filepath.Glob(filepath.Join(dir, "*", "log"))
			for _, name := range logs {
				text, _ := os.ReadFile(name)
				t.Logf("%s:\n%s", name, text)
			}
		}
		if err := b.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(string(b.groups)); b.groups != "" && err == nil {
			t.Errorf("cgroup %s is left", b.groups)
		}
	})
	return b
}

// eventually polls until f says true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// A rawClient sends and receives single packets.
type rawClient struct {
	t    testing.TB
	conn *net.UDPConn
	next uint64
}

func dial(t testing.TB, to netip.AddrPort) *rawClient {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &rawClient{t: t, conn: conn, next: uint64(time.Now().UnixNano())}
}

// packet is the wire form of h with payload, padded to room bytes of payload.
func packet(h api.Header, payload []byte, room int) []byte {
	h.Length = uint16(len(payload))
	b := append(h.Append(nil), payload...)
	return append(b, make([]byte, max(0, room-len(payload)))...)
}

func (c *rawClient) send(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) receive() (api.Header, []byte) {
	c.t.Helper()
	h, p, err := c.tryReceive(patience)
	if err != nil {
		c.t.Fatal(err)
	}
	return h, p
}

func (c *rawClient) tryReceive(wait time.Duration) (api.Header, []byte, error) {
	buf := make([]byte, 65536)
	c.conn.SetReadDeadline(time.Now().Add(wait))
	n, err := c.conn.Read(buf)
	if err != nil {
		return api.Header{}, nil, err
	}
	h, p, err := api.ParsePacket(buf[:n])
	if err == nil && n != api.RPCHeaderLen+len(p) {
		err = fmt.Errorf("answer has %d bytes of padding", n-api.RPCHeaderLen-len(p))
	}
	return h, p, err
}

func (c *rawClient) header(workload, method uint32, n int) api.Header {
	c.next++
	return api.Header{
		Type: api.TypeRequest, Workload: workload, Request: c.next, Count: 1, MessageLen: uint32(n), Method: method,
		DeadlineUS: 60e6, Client: 5, Sequence: 6,
	}
}

// call sends a request of one packet.
func (c *rawClient) call(workload, method uint32, payload []byte, room int) (api.Header, []byte) {
	c.t.Helper()
	c.send(packet(c.header(workload, method, len(payload)), payload, room))
	return c.receive()
}

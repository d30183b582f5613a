package test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/gateway"
	"github.com/lambdanic/lambdanic/internal/manager"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// directory is a manager that knows one function and does nothing.
type directory struct {
	gateway.Manager
	function api.Function
}

func (d *directory) Describe(_ context.Context, namespace, name string) (*api.Function, error) {
	if name != d.function.Name || namespace != "" {
		return nil, store.ErrNotFound
	}
	return &d.function, nil
}

func (d *directory) Deploy(context.Context, manager.Request) (*api.Function, error) {
	return nil, errors.New("nobody deploys")
}

// gateways serves the API as the daemon does: on a UNIX socket, and on TCP with credentials.
func gateways(t *testing.T, f api.Function) (private, public string) {
	t.Helper()
	g := gateway.New(gateway.Config{Manager: &directory{function: f}, Credentials: gateway.Credentials{User: "admin", Password: "a:b"}})
	t.Cleanup(g.Close)
	dir, err := os.MkdirTemp("", "lc") // t.TempDir's path is too long for UNIX sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	listen := func(network, address string, h http.Handler) string {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		server := g.Server(h)
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() { server.Close() })
		return l.Addr().String()
	}
	return "unix:" + listen("unix", filepath.Join(dir, "s"), g.Private()), listen("tcp", "127.0.0.1:0", g.Public())
}

// The example finds a function by its name and calls it, over both ways to the gateway, and explains failures.
func TestLookup(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	private, public := gateways(t, api.Function{
		Name: "echo", Labels: map[string]string{"endpoint": `}"\"{`, "workload": "9"}, Workload: echoPacket, Revision: 7, Endpoint: s.Addr(),
		Reason: `tabs	and "quotes"`, Spec: api.Spec{Name: "echo"},
	})
	out := t.TempDir()
	build(t, out, out+"/example", "CC=clang-19", "CFLAGS=-g -fsanitize=address,undefined -fno-sanitize-recover=undefined", "HARDEN=")
	run := func(credentials string, args ...string) string {
		cmd := exec.Command(out+"/example", args...)
		cmd.Env = append(os.Environ(), "LAMBDANIC_CREDENTIALS="+credentials)
		if credentials == "" {
			cmd.Env = os.Environ()
		}
		text, _ := cmd.CombinedOutput()
		return string(text)
	}
	const refused = "the gateway refused, or is none: check its address and the credentials"
	for _, c := range []struct{ credentials, gateway, name, want string }{
		{"", private, "echo", "hello"},
		{"admin:a:b", public, "echo", "hello"},
		{"", public, "echo", "echo: " + refused + "\n"},
		{"admin:wrong", public, "echo", "echo: " + refused + "\n"},
		{"", private, "other", "other: the gateway knows no function of that name\n"},
		{"", private, "../a b?c", "../a b?c: the gateway knows no function of that name\n"},
		{"", "unix:", "echo", "echo: no such host: give HOST, HOST:PORT or [IPv6]:PORT\n"},
		{"", "nowhere.invalid:80", "echo", "echo: no such host: give HOST, HOST:PORT or [IPv6]:PORT\n"},
	} {
		if got := run(c.credentials, c.gateway, c.name, "hello"); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.name, c.gateway, got, c.want)
		}
	}
}

// Anything but a gateway's answer is refused, and a silent gateway is not waited for forever.
func TestLookupOfNonsense(t *testing.T) {
	out := t.TempDir()
	build(t, out, out+"/example")
	for _, answer := range []string{
		"", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n{", "HTTP/1.0 200 OK\r\n\r\n{}", "HTTP/1.0 500 No\r\n\r\n{}", "ready\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\n" + `{"workload": 1, "revision": 1, "endpoint": "127.0.0.1:4370"`, // cut short
		"HTTP/1.0 200 OK\r\n\r\n" + `{"workload": 1, "revision": 1, "spec": {"endpoint": "127.0.0.1:4370"}}`,
		"HTTP/1.0 200 OK\r\n\r\n" + `{"workload": 4294967296, "revision": 1, "endpoint": "127.0.0.1:4370"}`,
		"HTTP/1.0 200 OK\r\n\r\n" + `{"workload": 1, "revision": 1, "endpoint": "` + strings.Repeat("1", 200) + `"}`,
		"HTTP/1.0 200 OK\r\n\r\n" + strings.Repeat("[", 1000),
		"HTTP/1.0 200 OK\r\n\r\n{" + strings.Repeat(" ", 2<<20),
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = conn.Write([]byte(answer))
		}()
		addr := netip.MustParseAddrPort(l.Addr().String())
		text, err := exec.Command(out+"/example", addr.String(), "echo").CombinedOutput()
		if err == nil || !strings.Contains(string(text), "the gateway refused") {
			t.Errorf("%.80q: %q, %v", answer, text, err)
		}
		l.Close()
	}
}

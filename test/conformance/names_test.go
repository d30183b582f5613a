package conformance

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/gateway"
	"github.com/lambdanic/lambdanic/internal/manager"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/rpcserver"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// directory is a manager that knows one function and counts how often it is asked.
type directory struct {
	gateway.Manager

	mu       sync.Mutex
	function api.Function
	asked    int
	down     chan struct{} // until this is closed, it does not answer; then it answers with an error
	first    func()        // what happens before it answers the next question

	hangs func(caller context.Context) // called in place of an answer
}

func (d *directory) Describe(ctx context.Context, namespace, name string) (*api.Function, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if first := d.first; first != nil {
		d.first = nil
		first()
	}
	if hangs := d.hangs; hangs != nil {
		d.mu.Unlock()
		hangs(ctx)
		d.mu.Lock()
		return nil, ctx.Err()
	}
	if down := d.down; down != nil {
		d.mu.Unlock()
		<-down
		d.mu.Lock()
		return nil, errors.New("out of order")
	}
	if f := d.function; name == f.Name && (namespace == "" || namespace == f.Namespace) {
		return &f, nil
	}
	return nil, store.ErrNotFound
}

func (d *directory) Deploy(context.Context, manager.Request) (*api.Function, error) {
	return nil, errors.New("nobody deploys")
}

// move moves the function. It returns how often the directory was asked since the last move.
func (d *directory) move(workload uint32, to netip.AddrPort) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asked
	d.asked, d.function.Workload, d.function.Endpoint = 0, workload, to
	return asked
}

// gateways serves the API as the daemon does: on a UNIX socket, and on TCP with credentials.
func gateways(t *testing.T, m gateway.Manager) (private, public string) {
	t.Helper()
	g := gateway.New(gateway.Config{Manager: m, Credentials: gateway.Credentials{User: "admin", Password: "a:b"}})
	t.Cleanup(g.Close)
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
	return "unix:" + listen("unix", filepath.Join(shortdir.New(t), "s"), g.Private()), listen("tcp", "127.0.0.1:0", g.Public())
}

func echoFunction(to netip.AddrPort) api.Function {
	return api.Function{Name: "echo", Namespace: "spaces", Workload: echoPacket, Revision: revision, Endpoint: to, Spec: api.Spec{Name: "echo"}}
}

// Functions are called by their names, and the gateway is asked once for all calls.
func TestNames(t *testing.T) {
	s := serve(t, "[::1]:0", rpcserver.Faults{})
	known := &directory{function: echoFunction(s.Addr())}
	private, public := gateways(t, known)
	for _, c := range []struct {
		settings
		name, want string
		asked      int
	}{
		{settings{Gateway: private}, "echo", "", 1},
		{settings{Gateway: private, Namespace: "spaces"}, "echo", "", 1},
		{settings{Gateway: private, Namespace: "other"}, "echo", "no such function", 3},
		{settings{Gateway: private}, "other", "no such function", 3},
		{settings{Gateway: private}, "../a b?c/d", "no such function", 3},
		{settings{Gateway: public, Credentials: "admin:a:b"}, "echo", "", 1},
		{settings{Gateway: "http://" + public, Credentials: "admin:a:b"}, "echo", "", 1},
		{settings{Gateway: "HTTP://" + public + "/function/NAME", Credentials: "admin:a:b"}, "echo", "", 1}, // as `lambdanic up` prints it
		{settings{Gateway: public, Credentials: "admin:wrong"}, "echo", "gateway", 0},
		{settings{Gateway: public}, "echo", "gateway", 0},
		{settings{Gateway: private + "-nobody"}, "echo", "gateway", 0},
	} {
		each(t, func(t *testing.T, d *driver) {
			d.open(c.settings)
			known.move(echoPacket, s.Addr())
			for _, o := range d.call(false, call{Name: c.name, Body: text(9)}, call{Name: c.name, Body: text(8)}, call{Name: c.name, Method: 5000}) {
				if o.Error != c.want || c.want == "" && (o.Revision != revision || len(o.Body) == 0) {
					t.Errorf("%s of %+v: %+v", c.name, c.settings, o)
				}
			}
			if n := known.move(0, netip.AddrPort{}); n != c.asked {
				t.Errorf("%s of %+v: the gateway was asked %d times, want %d", c.name, c.settings, n, c.asked)
			}
			d.close()
		})
	}
}

// A function that moves is found again: at once where its old place says so, and where that is silent, after some resends. One that is gone is unknown, however often the gateway says that it is there.
func TestMovedFunction(t *testing.T) {
	here, there := serve(t, "127.0.0.1:0", rpcserver.Faults{}), serve(t, "[::1]:0", rpcserver.Faults{})
	silent, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	known := &directory{function: echoFunction(here.Addr())}
	private, _ := gateways(t, known)
	each(t, func(t *testing.T, d *driver) {
		known.move(echoPacket, here.Addr())
		d.open(settings{Gateway: private})
		ask := func(deadlineUS int64, want string, asked int) {
			t.Helper()
			o := d.call(false, call{Name: "echo", Body: []byte("here?"), DeadlineUS: deadlineUS})[0]
			if o.Error != want || want == "" && string(o.Body) != "here?" {
				t.Errorf("%+v, want error %q", o, want)
			}
			if n := known.move(known.function.Workload, known.function.Endpoint); n != asked {
				t.Errorf("the gateway was asked %d times, want %d", n, asked)
			}
		}
		ask(0, "", 1)
		here.Set(9, workloads()[echoPacket])
		here.Refuse(func(h *api.Header) (api.Code, int) {
			if h.Workload == echoPacket {
				return api.CodeUnknownWorkload, 0
			}
			return 0, 0
		})
		defer here.Refuse(nil)
		known.move(9, here.Addr()) // deployed anew
		ask(0, "", 1)
		ask(0, "", 0)
		known.move(9, silent.LocalAddr().(*net.UDPAddr).AddrPort())
		here.Refuse(func(*api.Header) (api.Code, int) { return api.CodeUnknownWorkload, 0 })
		ask(3_000_000, "deadline exceeded", 2) // first where it is now, then whether it is still there
		known.move(echoPacket, there.Addr())
		ask(0, "", 1)
		there.Refuse(func(*api.Header) (api.Code, int) { return api.CodeUnknownWorkload, 0 })
		defer there.Refuse(nil)
		ask(0, "unknown workload", 1)
		d.close()
	})
}

// Package gateway turns HTTP into λ-RPC, and serves the management API in OpenFaaS's shape.
package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/openfaas/faas-provider/logs"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/manager"
	"github.com/lambdanic/lambdanic/internal/metrics"
)

// Manager is what the management API needs.
type Manager interface {
	BuildSource(ctx context.Context, source []byte) (*api.Artifact, error)
	Deploy(ctx context.Context, r manager.Request) (*api.Function, error)
	DeployFused(ctx context.Context, rs []manager.Request) ([]api.Function, error)
	Remove(ctx context.Context, namespace, name string) error
	Describe(ctx context.Context, namespace, name string) (*api.Function, error)
	List(ctx context.Context, namespace string) ([]api.Function, error)
	Stats(ctx context.Context) ([]api.FunctionStats, error)
	Targets(ctx context.Context) ([]api.NodeTarget, error)
	Namespaces(ctx context.Context) ([]api.Namespace, error)
	Namespace(ctx context.Context, name string) (*api.Namespace, error)
	SetQuota(ctx context.Context, name string, change api.QuotaChange) (*api.Namespace, error)
	RemoveNamespace(ctx context.Context, name string) error
	AddKey(ctx context.Context, namespace string) (*api.NewKey, error)
	RemoveKey(ctx context.Context, namespace string, number uint32) error
	RequireTags(ctx context.Context, namespace string, required bool) (*api.Namespace, error)
	AddNetwork(ctx context.Context, namespace string, network api.Network) (*api.Namespace, error)
	RemoveNetwork(ctx context.Context, namespace string, network api.Network) (*api.Namespace, error)
	Objects(ctx context.Context, namespace, name string) ([]api.Object, error)
	ReadObject(ctx context.Context, namespace, name, object string) ([]byte, error)
	WriteObject(ctx context.Context, namespace, name, object string, value []byte) error
	// The resources of a function (backend.Resource).
	AddResource(ctx context.Context, namespace, name, path string, decode func(request any) error) (any, error)
	ListResource(ctx context.Context, namespace, name, path string) (any, error)
	RemoveResource(ctx context.Context, namespace, name, path string, number uint32) error
}

// Ikernels attaches and detaches the node's ikernels.
type Ikernels interface {
	Attach(ctx context.Context, r api.IkernelRequest) (*api.Ikernel, error)
	ChangeKeys(ctx context.Context, name string, r api.IkernelKeysRequest) (*api.Ikernel, error)
	Detach(ctx context.Context, name string) error
	List() ([]api.Ikernel, error)
}

// Config holds what a gateway works with.
type Config struct {
	Node    string // its name
	Version string
	Commit  string
	// Lookup finds a function. It is called for every request, with the function's namespace spelt out.
	Lookup  func(namespace, name string) (Route, bool)
	Manager Manager
	// Describe fills in what only the daemon knows of the node; the targets come from Manager.
	Describe func() api.Node
	// Logs gives what the daemon said. The channel is closed after the last, or when ctx ends.
	Logs func(ctx context.Context, r logs.Request) <-chan logs.Message
	// NICs reads the counters of every NIC, by interface. It is nil where there is never a NIC.
	NICs func() (map[string][]backend.Counter, error)
	// Ikernels has the ikernels of the node. It is nil where there is never one.
	Ikernels Ikernels
	// Applications has the ikernels of applications' sockets. It is nil where there is never one.
	Applications func() ([]api.Ikernel, error)
	// Credentials guard /system/* and /metrics on Public.
	Credentials Credentials
	Log         *slog.Logger
}

// Gateway serves one instance.
type Gateway struct {
	Config
	clients clients
	calls   *metrics.Calls
	metrics http.Handler
	memory  *semaphore.Weighted
	// converter is held while an image is decoded.
	converter *semaphore.Weighted
	stall     time.Duration // the constant of that name, but in tests
}

// LimitMemory has the garbage collector of this process run less often while little is held, as between large messages, and more
// often near the limit on the heap. GOGC and GOMEMLIMIT in the environment take precedence.
func LimitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAfter)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}

// New returns a gateway.
func New(cfg Config) *Gateway {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{Config: cfg, memory: semaphore.NewWeighted(memory), converter: semaphore.NewWeighted(converting), stall: stall}
	g.calls = metrics.NewCalls(func(namespace, name string) bool {
		_, ok := g.Lookup(namespace, name)
		return ok
	})
	m := metrics.Config{Source: cfg.Manager, NICs: cfg.NICs, Calls: g.calls, Version: cfg.Version, Commit: cfg.Commit, Log: cfg.Log}
	if cfg.Ikernels != nil {
		m.Ikernels = cfg.Ikernels.List
	}
	g.metrics = metrics.Handler(m)
	return g
}

// Close closes the connections to lambdas.
func (g *Gateway) Close() { g.clients.closeAll() }

// Private serves everything to whoever can reach it: for a UNIX socket of mode 0600.
func (g *Gateway) Private() http.Handler {
	return g.handler(func(h http.Handler) http.Handler { return h })
}

// Public asks for credentials for everything but calling a function.
func (g *Gateway) Public() http.Handler { return g.handler(g.Credentials.require) }

func (g *Gateway) handler(guard func(http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	byPattern := func(w http.ResponseWriter, r *http.Request) {
		g.serveFunction(w, r, r.PathValue("name"), r.PathValue("path"))
	}
	mux.HandleFunc("/function/{name}", byPattern)
	mux.HandleFunc("/function/{name}/{path...}", byPattern)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("OK\n")) })
	mux.Handle("GET /metrics", guard(g.metrics))
	mux.Handle("/system/", guard(g.system()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Most requests are calls, and matching their pattern takes longer than a lambda takes to answer.
		if name, path, ok := functionPath(r.URL); ok {
			g.serveFunction(w, r, name, path)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// endStalled has the kernel end a TCP connection whose other end, for the time stall, has acknowledged nothing that was sent, or has
// had no room for more (tcp(7), TCP_USER_TIMEOUT).
func (g *Gateway) endStalled(ctx context.Context, c net.Conn) context.Context {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return ctx // the socket of root's own programs
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return ctx // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(g.stall.Milliseconds()))
	})
	if err != nil {
		g.Log.Warn("a caller that takes nothing may keep its connection", "remote", c.RemoteAddr(), "error", err)
	}
	return ctx
}

// functionPath splits /function/NAME[.NAMESPACE][/PATH] as the patterns do, where there is nothing to decode or to clean.
func functionPath(u *url.URL) (name, path string, ok bool) {
	rest, ok := strings.CutPrefix(u.Path, "/function/")
	if !ok || u.RawPath != "" || strings.Contains(u.Path, "//") || strings.Contains(u.Path, "/.") {
		return "", "", false
	}
	name, path, _ = strings.Cut(rest, "/")
	return name, path, name != ""
}

// Server returns an HTTP server that slow clients cannot hold up. Whoever reads a body sets a deadline, and the kernel ends a connection
// whose other end takes nothing. The server's own time-outs for reading and writing are not used: they are set anew with each request,
// which costs about as much as a run of a lambda, and the one for writing would end `lambdanic logs --follow` every so often.
func (g *Gateway) Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ConnContext:       g.endStalled,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.Log.Handler(), slog.LevelDebug),
	}
}

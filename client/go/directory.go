package lambdanic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"
)

// A Function is a gateway's answer about a function: its workload ID, its wanted revision, and where its requests go.
type Function struct {
	Workload uint32         `json:"workload"`
	Revision uint32         `json:"revision"`
	Endpoint netip.AddrPort `json:"endpoint"`
}

// A Directory makes calls by functions' names, for any number of goroutines. It remembers where a function is. It asks the gateway again
// when the function is unknown there, when its address refuses packets, and when it is silent: the call goes on at the new address.
// A request that may be executed only once is not sent elsewhere; the next call asks.
type Directory struct {
	url     string
	options directoryOptions
	http    *http.Client

	mu      sync.Mutex
	known   map[string]*Function
	clients map[netip.AddrPort]*Client
	closed  bool

	asking singleflight.Group // for functions, of calls under way
}

// DirectoryOption changes how NewDirectory asks and connects.
type DirectoryOption func(*directoryOptions)

type directoryOptions struct {
	user, password string
	namespace      string
	calls          []Option
}

// WithCredentials is for gateways reached over TCP.
func WithCredentials(user, password string) DirectoryOption {
	return func(o *directoryOptions) { o.user, o.password = user, password }
}

// WithNamespace is where functions are looked for. The default is api.DefaultNamespace.
func WithNamespace(name string) DirectoryOption {
	return func(o *directoryOptions) { o.namespace = name }
}

// WithOptions is for the connections to where functions are.
func WithOptions(opts ...Option) DirectoryOption {
	return func(o *directoryOptions) { o.calls = opts }
}

// NewDirectory calls the functions of a gateway: unix:PATH, HOST:PORT, or the URL that `lambdanic up` prints, whose path
// does not matter. Nothing is sent.
func NewDirectory(gateway string, opts ...DirectoryOption) *Directory {
	d := &Directory{
		url: gatewayURL(gateway), http: &http.Client{Timeout: defaults(nil).timeout},
		known: map[string]*Function{}, clients: map[netip.AddrPort]*Client{},
	}
	for _, opt := range opts {
		opt(&d.options)
	}
	if path, ok := strings.CutPrefix(gateway, "unix:"); ok {
		d.url = "http://gateway"
		d.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}}
	}
	return d
}

// gatewayURL makes a URL of HOST[:PORT], with or without http:// before it and a path behind. Another scheme is left to net/http.
func gatewayURL(gateway string) string {
	scheme, address, ok := strings.Cut(gateway, "://")
	if !ok {
		address = gateway
	} else if !strings.EqualFold(scheme, "http") {
		return gateway
	}
	host, _, _ := strings.Cut(address, "/")
	if host == "" {
		return gateway
	}
	if (&url.URL{Host: host}).Port() == "" {
		host = strings.TrimSuffix(host, ":") + ":8080"
	}
	return "http://" + host
}

// Close ends the calls in flight with ErrClosed.
func (d *Directory) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	var errs []error
	for _, c := range d.clients {
		errs = append(errs, c.Close())
	}
	d.http.CloseIdleConnections()
	return errors.Join(errs...)
}

// Stats returns the counters of all connections.
func (d *Directory) Stats() (sum Stats) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.clients {
		for _, s := range c.sockets {
			s.stats.addTo(&sum)
		}
	}
	return sum
}

// Call sends req, whose Workload does not matter, to the function of that name.
func (d *Directory) Call(ctx context.Context, name string, req Request) (Response, error) {
	if err := req.check(ctx); err != nil {
		return Response{}, fmt.Errorf("call %s: %w", name, err)
	}
	callOptions := defaults(d.options.calls)
	if err := callOptions.check(); err != nil {
		return Response{}, fmt.Errorf("call %s: %w", name, err)
	}
	f, err := d.find(ctx, name, nil)
	if err != nil {
		return Response{}, err
	}
	at := &whereabouts{directory: d, name: name, known: f}
	for asked := false; ; {
		f = at.known
		c, err := d.client(f.Endpoint)
		if err != nil {
			return Response{}, fmt.Errorf("call %s: %w", name, err)
		}
		req.Workload = f.Workload
		r, err := c.callAt(ctx, &req, at)
		switch {
		case err == nil:
			r.Resends = at.resends
			return r, nil
		case errors.Is(err, errMoved):
			continue
		case errors.Is(err, ErrDeadlineExceeded): // too late for this call
			d.forget(name, at.known)
		case errors.Is(err, ErrUnknownWorkload) && !asked:
			asked = true
			if at.known, err = d.find(ctx, name, at.known); err != nil {
				return Response{}, err
			}
			continue
		}
		return Response{}, fmt.Errorf("call %s: %w", name, err)
	}
}

// find returns a function from memory, or from the gateway where the function was not asked for before or is stale.
func (d *Directory) find(ctx context.Context, name string, stale *Function) (*Function, error) {
	d.mu.Lock()
	f := d.known[name]
	d.mu.Unlock()
	if f != nil && f != stale {
		return f, nil
	}
	f, err := d.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.known[name] = f
	d.mu.Unlock()
	return f, nil
}

func (d *Directory) forget(name string, f *Function) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[name] == f {
		delete(d.known, name)
	}
}

func (d *Directory) client(to netip.AddrPort) (*Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, ErrClosed
	}
	if c := d.clients[to]; c != nil {
		return c, nil
	}
	c, err := Dial(to.String(), d.options.calls...)
	if err == nil {
		d.clients[to] = c
	}
	return c, err
}

// Lookup asks the gateway. The error is ErrNoFunction or ErrGateway, wrapped.
func (d *Directory) Lookup(ctx context.Context, name string) (*Function, error) {
	if name == "" || ctx == nil {
		return nil, fmt.Errorf("look %q up: %w: give a name and a context", name, ErrArgument)
	}
	to := d.url + "/system/function/" + url.PathEscape(name)
	if d.options.namespace != "" {
		to += "?namespace=" + url.QueryEscape(d.options.namespace)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGateway, err)
	}
	if d.options.user != "" {
		req.SetBasicAuth(d.options.user, d.options.password)
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("look %s up: %w: %w", name, ErrGateway, err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("look %s up: %w", name, ErrNoFunction)
	default:
		return nil, fmt.Errorf("look %s up: %w: %s", name, ErrGateway, resp.Status)
	}
	f := new(Function)
	if err := json.NewDecoder(resp.Body).Decode(f); err != nil || !f.Endpoint.IsValid() {
		return nil, fmt.Errorf("look %s up: %w: its answer is not of a function that runs", name, ErrGateway)
	}
	return f, nil
}

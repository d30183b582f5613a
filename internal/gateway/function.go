package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/gateway/codec"
)

const (
	// A body up to this size is read before the lambda is called, so that a slow sender holds none of a NIC's message
	// records. A longer one streams.
	readAhead = 4 << 20
	// A reply up to this size is held back until the lambda's status is known.
	holdBack = 64 << 10
	// memory bounds the bodies and replies that are held at once, all requests together.
	memory = 512 << 20
	// stall is how long the other end may keep one read or write waiting.
	stall = 30 * time.Second
	// maxTimeout bounds header X-Timeout.
	maxTimeout = 10 * time.Minute
)

// errBody says that the caller's body could not be read, or is not what it says it is.
var errBody = errors.New("bad request body")

// errMemory says that the gateway holds as much as it may.
var errMemory = errors.New("the gateway is busy with other requests: try again later")

// Route says how to reach a function.
type Route struct {
	Workload uint32
	Target   api.Target
	Endpoint netip.AddrPort // invalid where nothing serves
	Spec     api.Spec
}

// serveFunction answers /function/NAME[.NAMESPACE][/...]: it turns HTTP into a call by λ-RPC.
func (g *Gateway) serveFunction(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	call := r.Header.Get(api.HeaderCallID)
	if uuid.Validate(call) != nil {
		call = uuid.NewString()
	}
	w.Header().Set(api.HeaderCallID, call)
	w.Header().Set(api.HeaderStartTime, strconv.FormatInt(start.UnixNano(), 10))

	name, namespace, _ := strings.Cut(r.PathValue("name"), ".")
	route, ok := g.Lookup(namespace, name)
	switch {
	case !ok:
		http.Error(w, fmt.Sprintf("function %s is not deployed", r.PathValue("name")), http.StatusNotFound)
		return
	case !route.Endpoint.IsValid():
		http.Error(w, fmt.Sprintf("function %s does not run: `lambdanic describe %s` says why", name, name), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set(api.HeaderServedBy, g.Node+"/"+string(route.Target))
	ctx, cancel, req, err := parseCall(r, &route)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer cancel()
	if r.ContentLength > int64(bodyLimit(r, &route)) {
		refuse(w, fmt.Errorf("body of %d bytes: %w", r.ContentLength, &http.MaxBytesError{Limit: int64(route.Spec.Message.Max)}))
		return
	}
	reply := &reply{w: w, http: http.NewResponseController(w), start: start}
	if err := g.call(ctx, req, &route, r, reply); err != nil {
		if reply.begun {
			panic(http.ErrAbortHandler) // the caller must not take half a reply for a whole one
		}
		refuse(w, err)
	}
}

// parseCall reads method and time-out.
func parseCall(r *http.Request, route *Route) (context.Context, context.CancelFunc, lambdanic.Request, error) {
	req := lambdanic.Request{Workload: route.Workload}
	method := r.URL.Query().Get("method")
	if method == "" {
		method = r.Header.Get(api.HeaderMethod)
	}
	if method != "" {
		n, err := strconv.ParseUint(method, 0, 32)
		if err != nil {
			return nil, nil, req, fmt.Errorf("method %q is not a number of 32 bits", method)
		}
		req.Method = uint32(n)
	}
	text := r.Header.Get(api.HeaderTimeout)
	if text == "" { // the client's own patience: some seconds without any packet
		return r.Context(), func() {}, req, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 || timeout > maxTimeout {
		return nil, nil, req, fmt.Errorf("%s %q is not a duration up to %v: write it as 500ms or 5s", api.HeaderTimeout, text, maxTimeout)
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	return ctx, cancel, req, nil
}

// isImage says whether the body is a file that the lambda's codec turns into a message.
func isImage(r *http.Request, route *Route) bool {
	return route.Spec.Codec == codec.Image && r.Header.Get("Content-Type") == codec.TypePNG
}

// bodyLimit is how long the body may be. A PNG of noise is somewhat longer than its pixels.
func bodyLimit(r *http.Request, route *Route) api.Bytes {
	limit := route.Spec.Message.Max
	if isImage(r, route) {
		limit += limit/8 + 64<<10
	}
	return limit
}

func (g *Gateway) call(ctx context.Context, req lambdanic.Request, route *Route, r *http.Request, out *reply) error {
	client, release, err := g.clients.get(route.Endpoint)
	if err != nil {
		return err
	}
	defer release()
	limit := int64(bodyLimit(r, route))
	body := io.Reader(&patientReader{http.MaxBytesReader(out.w, r.Body, limit), out.http})
	if isImage(r, route) {
		return g.callImage(ctx, client, req, body, route, out)
	}
	if r.ContentLength > readAhead {
		response, err := client.CallStream(ctx, req, body, int(r.ContentLength), out)
		if err != nil {
			return err
		}
		return out.end(response)
	}
	size := limit // where the length was not announced
	if r.ContentLength >= 0 {
		size = r.ContentLength
	}
	if !g.memory.TryAcquire(size) {
		return errMemory
	}
	defer g.memory.Release(size)
	if req.Body, err = io.ReadAll(body); err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	if path := r.PathValue("path"); path != "" && r.Method == http.MethodGet && len(req.Body) == 0 {
		req.Body = []byte("/" + path) // a GET asks for what the path names
		if len(req.Body) > int(route.Spec.Message.Max) {
			return fmt.Errorf("path: %w", &http.MaxBytesError{Limit: int64(route.Spec.Message.Max)})
		}
	}
	response, err := client.Call(ctx, req)
	if err != nil {
		return err
	}
	out.held = response.Body
	return out.end(response)
}

// callImage sends a PNG's pixels, and answers with a PNG where the reply is an image of the same size.
func (g *Gateway) callImage(ctx context.Context, client *lambdanic.Client, req lambdanic.Request, body io.Reader, route *Route, out *reply) error {
	held := int64(0)
	defer func() { g.memory.Release(held) }()
	pixels, size, err := codec.DecodePNG(body, route.Spec.Message.Max, func(pixels int64) error {
		if !g.memory.TryAcquire(2 * pixels) { // and the reply is as large at most
			return errMemory
		}
		held = 2 * pixels
		return nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	req.Body = pixels
	response, err := client.Call(ctx, req)
	if err != nil {
		return err
	}
	out.held = response.Body
	var file bytes.Buffer
	if response.Status == api.StatusOK && codec.EncodePNG(&file, response.Body, size) == nil {
		out.w.Header().Set("Content-Type", codec.TypePNG)
		out.held = file.Bytes()
	}
	return out.end(response)
}

// refuse answers a call that failed.
func refuse(w http.ResponseWriter, err error) {
	code := httpError(err)
	if code == http.StatusServiceUnavailable || code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, err.Error(), code)
}

// reply writes what a lambda answers. It holds the first bytes back, for the status comes last.
type reply struct {
	w     http.ResponseWriter
	http  *http.ResponseController
	start time.Time
	held  []byte
	begun bool // the header is out
}

func (o *reply) Write(p []byte) (int, error) {
	if !o.begun {
		if len(o.held)+len(p) <= holdBack {
			o.held = append(o.held, p...)
			return len(p), nil
		}
		if err := o.begin(http.StatusOK, -1); err != nil {
			return 0, err
		}
	}
	return o.write(p)
}

func (o *reply) write(p []byte) (int, error) {
	_ = o.http.SetWriteDeadline(time.Now().Add(stall)) // a recorder in a test has none
	return o.w.Write(p)
}

func (o *reply) begin(status, length int) error {
	o.begun = true
	h := o.w.Header()
	// A lambda names no type. Its text may be a page, but in a browser that page has no scripts and an origin of its own
	// (CSP level 3, "sandbox"): it cannot use credentials that the browser has for the management API.
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", http.DetectContentType(o.held))
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox")
	h.Set(api.HeaderDuration, strconv.FormatFloat(time.Since(o.start).Seconds(), 'f', 6, 64))
	if length >= 0 {
		h.Set("Content-Length", strconv.Itoa(length))
	}
	o.w.WriteHeader(status)
	_, err := o.write(o.held)
	o.held = nil
	return err
}

func (o *reply) end(response lambdanic.Response) error {
	if o.begun {
		return nil
	}
	o.w.Header().Set(api.HeaderRevision, strconv.FormatUint(uint64(response.Revision), 10))
	return o.begin(httpStatus(response.Status), len(o.held))
}

// patientReader waits a while for the sender, but not for ever.
type patientReader struct {
	io.Reader
	http *http.ResponseController
}

func (p *patientReader) Read(b []byte) (int, error) {
	_ = p.http.SetReadDeadline(time.Now().Add(stall))
	return p.Reader.Read(b)
}

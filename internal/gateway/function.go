package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/gateway/codec"
	"github.com/lambdanic/lambdanic/internal/store"
)

const (
	// A body up to this size is read before the lambda is called, so that a slow sender holds none of a NIC's message
	// records. A longer one streams.
	readAhead = 4 << 20
	// A reply up to this size is held back until the lambda's status is known.
	holdBack = 64 << 10
	// memory bounds the bodies and replies that are held at once, all requests together. The largest image and its pixels fit. While
	// a body grows, half as much again is in use.
	memory = 192 << 20
	// converting bounds the pixels that are being decoded at once, which may take twice as much beside them, at 16 bits a colour.
	converting = int64(api.MaxMessage)
	// heapLimit is what the garbage collector keeps the daemon below. With what is not on its heap, that is less than 512 MiB.
	heapLimit = 400 << 20
	// collectAfter is how much garbage may gather below heapLimit before a collection, in percent of what is held. An idle daemon holds
	// some 10 MiB; with Go's 100 percent, there would be a collection for every 5,000 calls.
	collectAfter = 400
	// A call whose body and reply stream holds a window of each (lambdanic.Client.CallStream).
	streamed = 2 << 20
	// A body's memory is reserved as it arrives: this much first, then doubled each time.
	firstStep = 64 << 10
	// stall is how long the other end may keep one read or write waiting.
	stall = 30 * time.Second
	// A write up to this size sets no deadline: a socket has room for it. Where it has not, the kernel's time-out ends the connection.
	unhurried = 2 << 10
	// Up to this size, net/http finds out a reply's length itself, and needs no entry in the map of headers for it.
	counted = 2 << 10
	// patience bounds the reading of a body that is held, however steadily it trickles.
	patience = 2 * time.Minute
	// maxTimeout bounds header X-Timeout.
	maxTimeout = 10 * time.Minute
)

// errBody says that the caller's body could not be read, or is not of its declared type.
var errBody = errors.New("bad request body")

// errSlow says that the caller kept the gateway waiting for its body.
var errSlow = errors.New("the request body did not arrive in time")

// Why a function that runs cannot be called from its machine.
var (
	ErrNetworks  = errors.New("it is reached from its namespace's networks alone, and the gateway is in none: call it there by λ-RPC")
	ErrInterface = errors.New("it is reached by the NIC's interface alone, which nothing passes that this machine sends to itself: call it from another machine by λ-RPC")
)

// errNoAnswer says that a lambda was asked, and may have run.
var errNoAnswer = errors.New("it gave no answer of one packet")

// errMemory says that the gateway holds as much as it may.
var errMemory = errors.New("the gateway is busy with other requests: try again later")

// Route says how to reach a function.
type Route struct {
	Workload uint32
	Target   api.Target
	Endpoint netip.AddrPort // invalid where nothing serves
	Spec     *api.Spec
	Key      *api.Key      // tags the calls; nil where the namespace requires no tags
	Asker    backend.Asker // runs the lambda without packets; nil where it has to be called
	Closed   error         // why it cannot be called; nil where it can
}

// serveFunction answers /function/NAME[.NAMESPACE][/...]: it turns HTTP into a call by λ-RPC.
func (g *Gateway) serveFunction(w http.ResponseWriter, r *http.Request, function, path string) {
	start := time.Now()
	out := &reply{w: w, http: http.NewResponseController(w), start: start}
	call := r.Header.Get(api.HeaderCallID)
	if call == "" { // OpenFaaS's gateway takes whatever the caller calls it
		call = newCallID()
	}
	out.set(api.HeaderCallID, call)
	out.set(api.HeaderStartTime, strconv.FormatInt(start.UnixNano(), 10))

	name, namespace, _ := strings.Cut(function, ".")
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	route, ok := g.Lookup(namespace, name)
	if !ok {
		http.Error(w, fmt.Sprintf("%v: %s/%s", store.ErrNotFound, namespace, name), http.StatusNotFound)
		return
	}
	switch {
	case route.Spec.P4 != "":
		out.deny(http.StatusBadRequest, fmt.Sprintf("function %s is a match stage: it answers the packets that %s chooses, and nobody can call it", name, route.Spec.P4))
	case !route.Endpoint.IsValid():
		out.deny(http.StatusServiceUnavailable, fmt.Sprintf("function %s does not run: `lambdanic describe %s` says why", name, name))
	default:
		g.answer(r, function, path, &route, out)
	}
	g.calls.Record(namespace, name, out.status, time.Since(start))
	if out.broken {
		panic(http.ErrAbortHandler) // the caller must not take half a reply for a whole one
	}
}

// newCallID makes a random UUID (RFC 9562 section 5.4). It names a call and guards nothing, so it need not be hard to guess.
func newCallID() string {
	var id uuid.UUID
	binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // version 4, variant 10
	return id.String()
}

// answer calls a function that runs, and answers with what it says or with what is wrong.
func (g *Gateway) answer(r *http.Request, function, path string, route *Route, out *reply) {
	out.set(api.HeaderServedBy, g.Node+"/"+string(route.Target))
	ctx, cancel, req, err := parseCall(r, route)
	if err != nil {
		out.deny(http.StatusBadRequest, err.Error())
		return
	}
	defer cancel()
	if r.ContentLength > int64(bodyLimit(r, route)) {
		err = fmt.Errorf("body of %d bytes: %w", r.ContentLength, &http.MaxBytesError{Limit: int64(route.Spec.Message.Max)})
	} else {
		err = g.call(ctx, req, route, r, path, out)
	}
	if err != nil {
		out.refuse(failure(function, route, err))
	}
}

// failure names the function that failed, and the cause: its limit on messages, its reply, or its services.
func failure(name string, route *Route, err error) error {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		remedy := "raise message.max in its spec"
		if route.Spec.Message.Mode == api.ModePacket {
			remedy = "longer ones need another message.mode than packet in its spec"
		}
		return fmt.Errorf("function %s takes messages of up to %d bytes, %s: %w", name, uint64(route.Spec.Message.Max), remedy, err)
	case errors.Is(err, lambdanic.ErrTooLarge): // bodyLimit holds for the request
		return fmt.Errorf("function %s: its reply does not fit: %w", name, err)
	case errors.Is(err, lambdanic.ErrServiceTimeout), errors.Is(err, lambdanic.ErrUnreachable):
		var services []string
		for _, s := range route.Spec.Services {
			services = append(services, fmt.Sprintf("%s at %s", s.Name, strings.Join(s.Servers(), " and ")))
		}
		return fmt.Errorf("function %s (%s): %w", name, strings.Join(services, ", "), err)
	}
	return fmt.Errorf("function %s: %w", name, err)
}

// parseCall reads method and time-out.
func parseCall(r *http.Request, route *Route) (context.Context, context.CancelFunc, lambdanic.Request, error) {
	req := lambdanic.Request{Workload: route.Workload}
	var method string
	if r.URL.RawQuery != "" {
		method = r.URL.Query().Get("method")
	}
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
	if text == "" { // the client's own patience: some seconds without progress
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

// call reads the request's body, has the function answer it, and writes the answer. A body that is too long to be held streams.
func (g *Gateway) call(ctx context.Context, req lambdanic.Request, route *Route, r *http.Request, path string, out *reply) error {
	held := reservation{memory: g.memory}
	defer held.release()
	if r.Body != http.NoBody {
		limit := int64(bodyLimit(r, route))
		body := &patientReader{Reader: http.MaxBytesReader(out.w, r.Body, limit), http: out.http}
		if r.ContentLength > readAhead && !isImage(r, route) {
			return g.stream(ctx, req, route, body, int(r.ContentLength), &held, out)
		}
		if r.ContentLength >= 0 {
			limit = r.ContentLength
		}
		body.until = time.Now().Add(patience)
		var err error
		if req.Body, err = held.read(body, limit); err != nil {
			return err
		}
	}
	if path != "" && r.Method == http.MethodGet && len(req.Body) == 0 {
		req.Body = []byte("/" + path) // a GET asks for what the path names
		if len(req.Body) > int(route.Spec.Message.Max) {
			return fmt.Errorf("path: %w", &http.MaxBytesError{Limit: int64(route.Spec.Message.Max)})
		}
	}
	if route.Asker != nil && !isImage(r, route) {
		response, ok, err := ask(ctx, route.Asker, &req)
		if err != nil {
			return err
		} else if ok {
			out.held = response.Body
			return out.end(response)
		} else if route.Closed != nil {
			return fmt.Errorf("%w, and %w", errNoAnswer, route.Closed)
		}
	}
	return g.send(ctx, req, route, isImage(r, route), &held, out)
}

// client is one that calls a function at its endpoint.
func (g *Gateway) client(route *Route) (*lambdanic.Client, func(), error) {
	if route.Closed != nil {
		return nil, nil, route.Closed
	}
	return g.clients.get(route.Endpoint, route.Key)
}

// stream sends a body as it arrives, and passes its reply on as it arrives.
func (g *Gateway) stream(ctx context.Context, req lambdanic.Request, route *Route, body io.Reader, size int, held *reservation, out *reply) error {
	if err := held.add(streamed); err != nil {
		return err
	}
	client, release, err := g.client(route)
	if err != nil {
		return err
	}
	defer release()
	response, err := client.CallStream(ctx, req, body, size, out)
	if err != nil {
		return err
	}
	return out.end(response)
}

// send calls the function at its endpoint.
func (g *Gateway) send(ctx context.Context, req lambdanic.Request, route *Route, image bool, held *reservation, out *reply) error {
	client, release, err := g.client(route)
	if err != nil {
		return err
	}
	defer release()
	req.Reserve = func(reply int) error { return held.add(int64(reply)) }
	if image {
		return callImage(ctx, g.converter, client, req, held, route, out)
	}
	response, err := client.Call(ctx, req)
	if err != nil {
		return err
	}
	out.held = response.Body
	return out.end(response)
}

// decode turns a PNG into pixels, when it is its turn.
func decode(ctx context.Context, converter *semaphore.Weighted, file []byte, held *reservation, limit api.Bytes) ([]byte, codec.Size, error) {
	var turn int64
	defer func() { converter.Release(turn) }()
	return codec.DecodePNG(bytes.NewReader(file), limit, func(pixels int64) error {
		if err := converter.Acquire(ctx, pixels); err != nil {
			return err
		}
		turn = pixels
		return held.add(pixels)
	})
}

// callImage sends the pixels of a PNG, and answers with a PNG where the reply is an image of the same size.
func callImage(ctx context.Context, converter *semaphore.Weighted, client *lambdanic.Client, req lambdanic.Request, held *reservation, route *Route, out *reply) error {
	pixels, size, err := decode(ctx, converter, req.Body, held, route.Spec.Message.Max)
	if ctx.Err() != nil {
		return fmt.Errorf("wait for other images: %w", ctx.Err())
	} else if err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	held.sub(held.held - int64(len(pixels))) // the file
	req.Body = pixels
	response, err := client.Call(ctx, req)
	if err != nil {
		return err
	}
	held.sub(int64(len(pixels)))
	out.held = response.Body
	if err := held.add(int64(len(response.Body))); err != nil { // for the file
		return err
	}
	var file bytes.Buffer
	if response.Status == api.StatusOK && codec.EncodePNG(&file, response.Body, size) == nil {
		out.set("Content-Type", codec.TypePNG)
		out.held = file.Bytes()
	}
	return out.end(response)
}

// reply writes a lambda's answer. It holds the first bytes back, as the status comes last.
type reply struct {
	w      http.ResponseWriter
	http   *http.ResponseController
	start  time.Time
	held   []byte
	begun  bool // the header is out
	broken bool // the header is out, and the rest of the answer failed
	status int  // what the caller is told, or would be if the answer were not broken

	values [10]string // the first n are those of headers that are set
	n      int
}

// set sets a header once, by its canonical name. All values share one array, where http.Header.Set makes one for each.
func (o *reply) set(name, value string) {
	if o.n == len(o.values) {
		o.w.Header().Set(name, value)
		return
	}
	o.values[o.n] = value
	o.w.Header()[name] = o.values[o.n : o.n+1 : o.n+1]
	o.n++
}

// deny answers with a status and a text.
func (o *reply) deny(status int, text string) {
	o.status = status
	http.Error(o.w, text, status)
}

// refuse answers a call that failed, unless the answer has begun.
func (o *reply) refuse(err error) {
	status := httpError(err)
	if o.begun {
		o.status, o.broken = status, true
		return
	}
	if status == http.StatusRequestTimeout {
		o.set("Connection", "close") // RFC 9110 section 15.5.9
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		o.set("Retry-After", "1")
	}
	o.deny(status, err.Error())
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
	if len(p) > unhurried {
		_ = o.http.SetWriteDeadline(time.Now().Add(stall)) // a recorder in a test has none
	}
	return o.w.Write(p)
}

func (o *reply) begin(status, length int) error {
	o.begun, o.status = true, status
	// A lambda names no type, and net/http goes by the first bytes. Its text may be a page, but in a browser that page has no scripts
	// and an origin of its own (CSP level 3, "sandbox"): it cannot use credentials that the browser has for the management API.
	o.set("X-Content-Type-Options", "nosniff")
	o.set("Content-Security-Policy", "sandbox")
	o.set(api.HeaderDuration, strconv.FormatFloat(time.Since(o.start).Seconds(), 'f', 6, 64))
	if length > counted {
		o.set("Content-Length", strconv.Itoa(length))
	}
	o.w.WriteHeader(status)
	_, err := o.write(o.held)
	o.held = nil
	return err
}

func (o *reply) end(response lambdanic.Response) error {
	failed := response.Status != api.StatusOK
	if o.begun {
		if failed { // another status cannot be sent any more
			return fmt.Errorf("the function answered with status %s after a part of its reply", statusText(response.Status))
		}
		return nil
	}
	if failed {
		if len(o.held) != response.Length { // what came before the failure
			o.held = nil
		}
		if len(o.held) == 0 {
			o.held = fmt.Appendf(nil, "the function answered with status %s\n", statusText(response.Status))
		}
	}
	o.set(api.HeaderRevision, strconv.FormatUint(uint64(response.Revision), 10))
	return o.begin(httpStatus(response.Status), len(o.held))
}

// reservation is what one request holds of the gateway's memory.
type reservation struct {
	memory *semaphore.Weighted
	held   int64
}

func (r *reservation) add(n int64) error {
	if !r.memory.TryAcquire(n) {
		return errMemory
	}
	r.held += n
	return nil
}

func (r *reservation) sub(n int64) {
	r.memory.Release(n)
	r.held -= n
}

func (r *reservation) release() { r.memory.Release(r.held) }

// read reads a body to its end. A sender reserves at most twice what it sent, whatever it announced: otherwise a few
// senders that send nothing would keep all others out.
func (r *reservation) read(body io.Reader, limit int64) ([]byte, error) {
	var buf []byte
	for left := limit; left > 0; {
		step := min(max(int64(len(buf)), firstStep), left)
		if err := r.add(step); err != nil {
			return nil, err
		}
		grown := make([]byte, len(buf), int64(len(buf))+step) // to the byte, which neither append() nor bytes.Buffer do
		copy(grown, buf)
		buf = grown
		for len(buf) < cap(buf) { // io.ReadFull does not tell the end of a body from a broken connection
			n, err := body.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+n]
			if err == io.EOF {
				return buf, nil
			} else if err != nil {
				return nil, err
			}
		}
		left -= step
	}
	// The body has ended, or the reader below reports that it is too long.
	if _, err := io.Copy(io.Discard, body); err != nil {
		return nil, err
	}
	return buf, nil
}

// patientReader waits a while for the sender, but not for ever. Its errors are errSlow and errBody. At the end of the body no
// deadline is left: the server goes on reading, to see the caller hang up, and would take an expired deadline for that.
type patientReader struct {
	io.Reader
	http  *http.ResponseController
	until time.Time // when all must have been read; zero: never
}

func (p *patientReader) Read(b []byte) (int, error) {
	deadline := time.Now().Add(stall)
	if !p.until.IsZero() && p.until.Before(deadline) {
		deadline = p.until
	}
	_ = p.http.SetReadDeadline(deadline) // a recorder in a test has none
	n, err := p.Reader.Read(b)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return n, errSlow
	case err == io.EOF:
		_ = p.http.SetReadDeadline(time.Time{})
	case err != nil:
		return n, fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}

package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// Methods of the fake lambda: up to 255 it echoes with that status, from 1000 it answers with that error code.
const (
	methodError  = 1000
	methodSilent = 9999
)

// fakeLambda answers requests of one packet on loopback.
func fakeLambda(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 65536)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			h, payload, err := api.ParsePacket(buf[:n])
			if err != nil || h.Type != api.TypeRequest || h.Method == methodSilent {
				continue
			}
			h.Type, h.Code, h.Revision, h.Flags = api.TypeResponse, uint8(h.Method), 7, 0
			if h.Method >= methodError {
				h.Type, h.Code, payload = api.TypeError, uint8(h.Method-methodError), nil
			}
			h.Length, h.MessageLen = uint16(len(payload)), uint32(len(payload))
			_, _ = conn.WriteToUDPAddrPort(append(h.Append(nil), payload...), from)
		}
	}()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// deadEndpoint is where nothing listens.
func deadEndpoint(t *testing.T) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

func newGateway(t *testing.T) *Gateway {
	t.Helper()
	endpoint, nobody := fakeLambda(t), deadEndpoint(t)
	spec := api.Spec{Name: "echo"}.Default()
	pixels := api.Spec{Name: "pixels", Codec: "image", Message: api.MessageSpec{Mode: api.ModeStream, Max: 1024}}.Default()
	large := api.Spec{Name: "large", Message: api.MessageSpec{Mode: api.ModeStream, Max: 64 << 20}}.Default()
	images := api.Spec{Name: "images", Codec: "image", Message: api.MessageSpec{Mode: api.ModeStream, Max: 64 << 20}}.Default()
	stage := api.Spec{Name: "stage", P4: "stage.p4"}.Default()
	kv := api.Spec{
		Name: "kv", Services: []api.ServiceSpec{{Name: "memcached", Protocol: "memcached", Address: "192.0.2.9:11211"}},
	}.Default()
	g := New(Config{
		Node: "n1", Version: "v1", Commit: "c0ffee",
		Lookup: func(namespace, name string) (Route, bool) {
			switch namespace + "/" + name {
			case "default/echo", "tenant/echo":
				return Route{Workload: 1, Target: api.TargetNIC, Endpoint: endpoint, Spec: &spec}, true
			case "default/pixels":
				return Route{Workload: 2, Target: api.TargetNIC, Endpoint: endpoint, Spec: &pixels}, true
			case "default/large":
				return Route{Workload: 1, Target: api.TargetNIC, Endpoint: endpoint, Spec: &large}, true
			case "default/images":
				return Route{Workload: 2, Target: api.TargetNIC, Endpoint: endpoint, Spec: &images}, true
			case "default/kv":
				return Route{Workload: 1, Target: api.TargetNIC, Endpoint: endpoint, Spec: &kv}, true
			case "default/dead":
				return Route{Workload: 1, Target: api.TargetProcess, Endpoint: nobody, Spec: &spec}, true
			case "default/stage":
				return Route{Workload: 4, Target: api.TargetNIC, Endpoint: nobody, Spec: &stage}, true
			case "default/broken":
				return Route{Workload: 3, Spec: &spec}, true
			}
			return Route{}, false
		},
		Manager:     &fakeManager{},
		Describe:    func() api.Node { return api.Node{Name: "n1"} },
		Credentials: Credentials{User: "admin", Password: "secret"},
	})
	t.Cleanup(g.Close)
	return g
}

func do(t *testing.T, h http.Handler, method, url, body string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestFunctionStatuses(t *testing.T) {
	h := newGateway(t).Public()
	for query, want := range map[string]int{
		"": 200, "?method=0": 200, "?method=1": 404, "?method=2": 400, "?method=3": 500, "?method=4": 502, "?method=0x5": 500,
		"?method=1001": 404, "?method=1002": 429, "?method=1003": 502, "?method=1004": 400, "?method=1005": 500, "?method=1006": 500,
		"?method=1007": 503, "?method=1008": 504, "?method=1009": 502,
		"?method=x": 400, "?method=-1": 400, "?method=4294967296": 400,
	} {
		r := do(t, h, "POST", "/function/echo"+query, "hello")
		if r.StatusCode != want {
			t.Errorf("method %s: %d %q, want %d", query, r.StatusCode, bodyOf(t, r), want)
		}
		if retry := r.Header.Get("Retry-After"); (want == 503 || want == 429) != (retry != "") {
			t.Errorf("method %s: Retry-After %q with status %d", query, retry, want)
		}
	}
}

// A lambda may answer with HTTP's statuses from 400 to 555, and its own ones are failures.
func TestOwnStatuses(t *testing.T) {
	h := newGateway(t).Public()
	for status := 5; status <= 255; status++ {
		want := 500
		if status >= 100 {
			want = status + 300
		}
		if r := do(t, h, "POST", fmt.Sprint("/function/echo?method=", status), "why"); r.StatusCode != want || bodyOf(t, r) != "why" {
			t.Errorf("status %d: HTTP %d, want %d", status, r.StatusCode, want)
		}
	}
}

// A failure without bytes gets a text, one with bytes keeps them.
func TestFailureHasText(t *testing.T) {
	h := newGateway(t).Public()
	for query, want := range map[string]string{
		"?method=1": "the function answered with status not found\n", "?method=9": "the function answered with status 9\n",
		"?method=129": "the function answered with status 129, by HTTP 429 Too Many Requests\n",
		"?method=255": "the function answered with status 255, by HTTP 555\n", "?method=0": "",
	} {
		if got := bodyOf(t, do(t, h, "POST", "/function/echo"+query, "")); got != want {
			t.Errorf("method %s: %q, want %q", query, got, want)
		}
	}
	if got := bodyOf(t, do(t, h, "POST", "/function/echo?method=2", "why")); got != "why" {
		t.Errorf("the lambda's text became %q", got)
	}
}

// A failed stream does not pass its beginning off as the answer.
func TestFailureAfterPartOfReply(t *testing.T) {
	for written, aborted := range map[int]bool{100: false, holdBack + 1: true} {
		w := httptest.NewRecorder()
		out := &reply{w: w, http: http.NewResponseController(w)}
		if _, err := out.Write(make([]byte, written)); err != nil {
			t.Fatal(err)
		}
		err := out.end(lambdanic.Response{Status: api.StatusBadRequest})
		if aborted {
			if err == nil {
				t.Error("half a reply passed for a whole one")
			}
			continue
		}
		if text := w.Body.String(); err != nil || w.Code != http.StatusBadRequest || !strings.Contains(text, "bad request") {
			t.Errorf("%d %q (%v)", w.Code, text, err)
		}
	}
}

func TestFunctionRouting(t *testing.T) {
	h := newGateway(t).Public()
	for path, want := range map[string]int{
		"/function/echo": 200, "/function/echo/": 200, "/function/echo/a/b": 200, "/function/echo.tenant/a": 200,
		"/function/echo.other": 404, "/function/nope": 404, "/function/": 404, "/": 404, "/function/broken": 503, "/function/stage": 400,
		"/function/%2e%2e": 404, "/function/echo%2f..%2f": 404,
	} {
		if r := do(t, h, "GET", path, ""); r.StatusCode != want {
			t.Errorf("%s: %d %q, want %d", path, r.StatusCode, bodyOf(t, r), want)
		}
	}
}

func TestFunctionHeaders(t *testing.T) {
	h := newGateway(t).Public()
	r := do(t, h, "POST", "/function/echo", "hello", api.HeaderMethod, "0")
	if body := bodyOf(t, r); r.StatusCode != 200 || body != "hello" {
		t.Fatalf("%d %q", r.StatusCode, body)
	}
	if uuid.Validate(r.Header.Get(api.HeaderCallID)) != nil || r.Header.Get(api.HeaderServedBy) != "n1/nic" ||
		len(r.Header.Get(api.HeaderStartTime)) != 19 || r.Header.Get(api.HeaderDuration) == "" ||
		r.Header.Get(api.HeaderRevision) != "7" {
		t.Errorf("headers %v", r.Header)
	}
	for _, own := range []string{uuid.NewString(), "order-4711", strings.ToUpper(uuid.NewString())} { // as OpenFaaS takes it over
		if r := do(t, h, "POST", "/function/echo", "", api.HeaderCallID, own); r.Header.Get(api.HeaderCallID) != own {
			t.Errorf("call ID %s became %s", own, r.Header.Get(api.HeaderCallID))
		}
	}
	r = do(t, h, "POST", "/function/echo", "<script>alert(1)</script>")
	if r.Header.Get("Content-Security-Policy") != "sandbox" || r.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Error("a page that a lambda answers may use what the browser knows of the management API")
	}
	if body := bodyOf(t, do(t, h, "GET", "/function/echo/a/b", "")); body != "/a/b" {
		t.Errorf("GET of a path asked for %q", body)
	}
	if body := bodyOf(t, do(t, h, "POST", "/function/echo/a/b", "")); body != "" {
		t.Errorf("POST to a path sent %q", body)
	}
}

func TestFunctionLimits(t *testing.T) {
	g := newGateway(t)
	server := serve(t, g)
	long := strings.Repeat("x", api.RPCMaxPayload+1)
	for name, body := range map[string]io.Reader{
		"announced": strings.NewReader(long),
		"chunked":   io.MultiReader(strings.NewReader(long)),
	} {
		r, err := http.Post(server.URL+"/function/echo", "text/plain", body)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s body one byte too long: %d", name, r.StatusCode)
		}
		if text := bodyOf(t, r); !strings.Contains(text, fmt.Sprintf("up to %d bytes", api.RPCMaxPayload)) || !strings.Contains(text, "message.mode") {
			t.Errorf("%s body one byte too long: %q", name, text)
		}
		_ = r.Body.Close()
	}
	// A body that is announced too long is refused before it is sent.
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = fmt.Fprintf(conn, "POST /function/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
	answer := make([]byte, 12)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 413" {
		t.Errorf("answer %q (%v), want 413 before the body", answer, err)
	}
}

func TestFunctionMemory(t *testing.T) {
	g := newGateway(t)
	if !g.memory.TryAcquire(memory - 2*3) {
		t.Fatal("the gateway holds something before there was a request")
	}
	for _, body := range []string{"seventh", "four"} { // itself, and the reply that is as long
		if r := do(t, g.Public(), "POST", "/function/echo", body); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("without memory for %q and its reply: %d", body, r.StatusCode)
		}
	}
	for range 2 { // the second shows that the first gave back what it held
		if r := do(t, g.Public(), "POST", "/function/echo", "two"); r.StatusCode != 200 {
			t.Errorf("with enough memory: %d", r.StatusCode)
		}
	}
}

// Slow senders, with or without an announced length, keep nobody else out.
func TestFunctionIdleBodies(t *testing.T) {
	const uploads = 64
	g := newGateway(t)
	server := serve(t, g)
	for i := range uploads {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		body := "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
		switch i % 3 {
		case 1:
			body = "Content-Length: 4194304\r\n\r\nx"
		case 2:
			body = "Content-Type: image/png\r\nContent-Length: 4194304\r\n\r\nx"
		}
		if _, err := fmt.Fprintf(conn, "POST /function/large HTTP/1.1\r\nHost: x\r\n%s", body); err != nil {
			t.Fatal(err)
		}
	}
	// All of them are being read once this much is held.
	for deadline := time.Now().Add(time.Minute); g.memory.TryAcquire(memory - uploads*firstStep + 1); {
		g.memory.Release(memory - uploads*firstStep + 1)
		if time.Now().After(deadline) {
			t.Fatal("the uploads do not arrive")
		}
		time.Sleep(time.Millisecond)
	}
	if !g.memory.TryAcquire(memory - uploads*firstStep - 2*firstStep) {
		t.Fatalf("%d senders of one byte hold more than %d bytes", uploads, (uploads+2)*firstStep)
	}
	r, err := http.Post(server.URL+"/function/large", "text/plain", strings.NewReader("hello"))
	if err != nil {
		t.Fatal(err)
	}
	if body := bodyOf(t, r); r.StatusCode != http.StatusOK || body != "hello" {
		t.Errorf("beside idle uploads: %d %q", r.StatusCode, body)
	}
	_ = r.Body.Close()
}

// deadlines records the last read deadline that was set, and the last that was not zero.
type deadlines struct {
	http.ResponseWriter
	read, last time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	if d.last = t; !t.IsZero() {
		d.read = t
	}
	return nil
}

func TestBodyDeadline(t *testing.T) {
	d := &deadlines{ResponseWriter: httptest.NewRecorder()}
	until := time.Now().Add(stall / 2)
	for name, r := range map[string]*patientReader{
		"held":     {until: until},
		"streamed": {},
	} {
		r.Reader, r.http = iotest.OneByteReader(strings.NewReader("body")), http.NewResponseController(d)
		if _, err := io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if !d.last.IsZero() { // it would end a call that takes longer
			t.Errorf("%s: at the body's end, the deadline is %v", name, d.last)
		}
		if name == "held" && !d.read.Equal(until) || name == "streamed" && !d.read.After(until) {
			t.Errorf("a body that is %s may be read for another %v", name, time.Until(d.read))
		}
	}
}

// Reservations follow the bytes that came, and are all given back.
func TestReservation(t *testing.T) {
	for _, size := range []int64{0, 1, firstStep - 1, firstStep, firstStep + 1, 5 * firstStep} {
		text := strings.Repeat("b", int(size))
		r := reservation{memory: semaphore.NewWeighted(8 * firstStep)}
		got, err := r.read(iotest.HalfReader(strings.NewReader(text)), 16*firstStep)
		if err != nil || string(got) != text {
			t.Errorf("%d bytes: read %d (%v)", size, len(got), err)
		}
		if r.held < size || r.held > 2*size+firstStep {
			t.Errorf("%d bytes: %d reserved", size, r.held)
		}
		r.release()
		if !r.memory.TryAcquire(8 * firstStep) {
			t.Errorf("%d bytes: something stays reserved", size)
		}
	}
	r := reservation{memory: semaphore.NewWeighted(8 * firstStep)}
	if _, err := r.read(strings.NewReader(strings.Repeat("b", 9*firstStep)), 16*firstStep); !errors.Is(err, errMemory) {
		t.Errorf("more than there is: %v", err)
	}
}

// A body that breaks off is not accepted as a body, nor as a source.
func TestBrokenBodyIsNotWhole(t *testing.T) {
	cut := io.MultiReader(strings.NewReader("tar"), iotest.ErrReader(io.ErrUnexpectedEOF)) // as net/http reports it
	r := reservation{memory: semaphore.NewWeighted(firstStep)}
	if got, err := r.read(cut, firstStep); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q (%v)", got, err)
	}
	cut = io.MultiReader(strings.NewReader("tar"), iotest.ErrReader(io.ErrUnexpectedEOF))
	w := httptest.NewRecorder()
	New(Config{Manager: &fakeManager{}}).Private().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/system/artifacts", cut))
	if text := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(text, "read the source") {
		t.Errorf("a source that breaks off: %d %q", w.Code, text)
	}
}

// A body that breaks off, or does not come on, ends the call with that reason, whether it is held or streams.
func TestFunctionBrokenBodies(t *testing.T) {
	h := newGateway(t).Public()
	for name, body := range map[string]struct {
		err    error // as net/http reports it
		status int
		text   string
	}{
		"breaks off": {io.ErrUnexpectedEOF, http.StatusBadRequest, "bad request body: "},
		"stalls":     {&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, http.StatusRequestTimeout, "did not arrive in time"},
	} {
		for path, length := range map[string]int64{"/function/echo": 5, "/function/large": readAhead + 1} {
			cut := io.MultiReader(strings.NewReader("b"), iotest.ErrReader(body.err))
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, cut)
			r.ContentLength = length
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if text := w.Body.String(); w.Code != body.status || !strings.Contains(text, body.text) {
				t.Errorf("%s: a body of %d that %s: %d %q, want %d", path, length, name, w.Code, text, body.status)
			}
			if closes := w.Header().Get("Connection") == "close"; closes != (body.status == http.StatusRequestTimeout) {
				t.Errorf("%s: a body that %s: connection closes: %t", path, name, closes)
			}
		}
	}
}

// Errors name the function and, where a service is to blame, the service.
func TestFunctionErrorsNameTheFunction(t *testing.T) {
	h := newGateway(t).Public()
	for path, want := range map[string]string{
		"/function/echo?method=1005":        "function echo: call workload 0x1: λ-RPC error 5: ",
		"/function/echo.tenant?method=1007": "function echo.tenant: call workload 0x1: λ-RPC error 7: ",
		"/function/echo?method=1006":        "function echo: its reply does not fit: call workload 0x1: λ-RPC error 6: ",
		"/function/kv?method=1008":          "function kv (memcached at 192.0.2.9:11211): call workload 0x1: λ-RPC error 8: ",
		"/function/kv?method=1009":          "function kv (memcached at 192.0.2.9:11211): call workload 0x1: λ-RPC error 9: ",
	} {
		if text := bodyOf(t, do(t, h, "POST", path, "hello")); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", path, text, want)
		}
	}
}

func TestFunctionTimeouts(t *testing.T) {
	h := newGateway(t).Public()
	path := fmt.Sprintf("/function/echo?method=%d", methodSilent)
	if r := do(t, h, "POST", path, "", api.HeaderTimeout, "50ms"); r.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("no answer in time: %d", r.StatusCode)
	}
	if r := do(t, h, "POST", "/function/dead", "", api.HeaderTimeout, "50ms"); r.StatusCode != http.StatusBadGateway {
		t.Errorf("nothing listens: %d", r.StatusCode)
	}
	for _, bad := range []string{"5", "-1s", "1h", "soon"} {
		if r := do(t, h, "POST", path, "", api.HeaderTimeout, bad); r.StatusCode != http.StatusBadRequest {
			t.Errorf("time-out %q: %d", bad, r.StatusCode)
		}
	}
}

func TestFunctionImages(t *testing.T) {
	h := newGateway(t).Public()
	img := image.NewNRGBA(image.Rect(0, 0, 5, 3))
	for i := range img.Pix {
		img.Pix[i] = byte(7*i) | 3
	}
	var file bytes.Buffer
	if err := png.Encode(&file, img); err != nil {
		t.Fatal(err)
	}
	r := do(t, h, "POST", "/function/pixels", file.String(), "Content-Type", "image/png")
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "image/png" {
		t.Fatalf("%d %v %q", r.StatusCode, r.Header, bodyOf(t, r))
	}
	got, err := png.Decode(r.Body)
	if err != nil || !bytes.Equal(got.(*image.NRGBA).Pix, img.Pix) {
		t.Errorf("the pixels changed on the way (%v)", err)
	}
	if r := do(t, h, "POST", "/function/pixels", "no image", "Content-Type", "image/png"); r.StatusCode != http.StatusBadRequest {
		t.Errorf("a body that is no PNG: %d", r.StatusCode)
	}
	file.Reset()
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 100, 100))); err != nil {
		t.Fatal(err)
	}
	if r := do(t, h, "POST", "/function/pixels", file.String(), "Content-Type", "image/png"); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("an image with too many pixels: %d", r.StatusCode)
	}
}

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// calls reads how many calls /metrics has by function and status, from the counter and from the histogram.
func calls(t *testing.T, h http.Handler) map[string]int {
	t.Helper()
	r := do(t, h, "GET", "/metrics", "")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", r.Status, err)
	}
	counts, histogram := map[string]int{}, map[string]int{}
	for _, m := range families["gateway_function_invocation_total"].GetMetric() {
		counts[fmt.Sprint(m.GetLabel()[1].GetValue(), " ", m.GetLabel()[0].GetValue())] = int(m.GetCounter().GetValue())
	}
	for _, m := range families["gateway_functions_seconds"].GetMetric() {
		histogram[fmt.Sprint(m.GetLabel()[1].GetValue(), " ", m.GetLabel()[0].GetValue())] = int(m.GetHistogram().GetSampleCount())
	}
	if !reflect.DeepEqual(counts, histogram) {
		t.Errorf("counted %v, measured %v", counts, histogram)
	}
	return counts
}

// Each call is counted by the status of its answer; calls of missing functions are not counted.
func TestCallsAreCounted(t *testing.T) {
	h := newGateway(t).Private()
	if got := calls(t, h); len(got) != 0 {
		t.Errorf("before the first call: %v", got)
	}
	for range 5 {
		do(t, h, "POST", "/function/echo", "hello")
	}
	do(t, h, "GET", "/function/echo.default/a", "")
	do(t, h, "POST", "/function/echo.", "")
	do(t, h, "POST", "/function/echo.tenant?method=1", "")
	do(t, h, "POST", "/function/echo?method=x", "")
	do(t, h, "POST", "/function/echo?method=1007", "")
	do(t, h, "POST", "/function/echo", strings.Repeat("x", api.RPCMaxPayload+1))
	do(t, h, "POST", "/function/dead", "", api.HeaderTimeout, "50ms")
	do(t, h, "POST", "/function/broken", "")
	for i := range 100 {
		do(t, h, "POST", fmt.Sprint("/function/nope", i), "")
		do(t, h, "POST", fmt.Sprint("/function/echo.nope", i), "")
	}
	want := map[string]int{
		"echo.default 200": 7, "echo.tenant 404": 1, "echo.default 400": 1, "echo.default 503": 1, "echo.default 413": 1,
		"dead.default 502": 1, "broken.default 503": 1,
	}
	if got := calls(t, h); !reflect.DeepEqual(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// A removed function has no series any more.
func TestRemovedFunctionIsNotCounted(t *testing.T) {
	g := newGateway(t)
	h := g.Private()
	do(t, h, "POST", "/function/echo", "")
	do(t, h, "POST", "/function/echo.tenant", "")
	lookup := g.Lookup
	g.Lookup = func(namespace, name string) (Route, bool) {
		route, ok := lookup(namespace, name)
		return route, ok && namespace == "tenant"
	}
	if got, want := calls(t, h), map[string]int{"echo.tenant 200": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// statusSeen is a response whose channel closes with the status.
type statusSeen struct {
	*httptest.ResponseRecorder
	seen chan struct{}
}

func (s *statusSeen) WriteHeader(code int) {
	s.ResponseRecorder.WriteHeader(code)
	close(s.seen)
}

// An answer that breaks off after its status is not counted under that status.
func TestBrokenAnswerIsCounted(t *testing.T) {
	server, err := rpcserver.Start("127.0.0.1:0", map[uint32]rpcserver.Workload{1: {
		Mode: api.ModeStream, Part: func(_ uint32, size, _ int, part []byte) ([]byte, int, bool) { return part, size, true },
	}}, rpcserver.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	g := newGateway(t)
	lookup := g.Lookup
	g.Lookup = func(namespace, name string) (Route, bool) {
		route, ok := lookup(namespace, name)
		route.Endpoint = server.Addr()
		return route, ok
	}
	w := &statusSeen{httptest.NewRecorder(), make(chan struct{})}
	cut := iotest.ErrReader(io.ErrUnexpectedEOF)
	body := io.MultiReader(bytes.NewReader(make([]byte, readAhead)), readerFunc(func(p []byte) (int, error) {
		<-w.seen
		return cut.Read(p)
	}))
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/function/large", body)
	r.ContentLength = readAhead + 1
	func() {
		defer func() {
			if e := recover(); e != http.ErrAbortHandler {
				t.Errorf("a broken answer ends with %v", e)
			}
		}()
		g.Private().ServeHTTP(w, r)
	}()
	if got, want := calls(t, g.Private()), map[string]int{"large.default 400": 1}; w.Code != http.StatusOK || !reflect.DeepEqual(got, want) {
		t.Errorf("status %d, counted %v, want %v", w.Code, got, want)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A caller who hangs up is not the function's failure.
func TestHungUpCallIsCounted(t *testing.T) {
	h := newGateway(t).Private()
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", fmt.Sprint("/function/echo?method=", methodSilent), nil))
	if got, want := calls(t, h), map[string]int{"echo.default 499": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// On the gateway's TCP address, metrics are for those who have the credentials.
func TestMetricsAreGuarded(t *testing.T) {
	g := newGateway(t)
	ask := func(h http.Handler, method, user, password string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), method, "/metrics", nil)
		if user != "" {
			r.SetBasicAuth(user, password)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for _, c := range []struct {
		h                      http.Handler
		method, user, password string
		want                   int
	}{
		{g.Public(), "GET", "", "", 401}, {g.Public(), "GET", "admin", "wrong", 401}, {g.Public(), "GET", "admin", "secret", 200},
		{g.Private(), "GET", "", "", 200}, {g.Private(), "HEAD", "", "", 200}, {g.Private(), "POST", "", "", 405},
	} {
		r := ask(c.h, c.method, c.user, c.password)
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != c.want || (c.want == 200) != bytes.Contains(body, []byte("lambdanic_build_info{commit=\"c0ffee\",version=\"v1\"} 1")) {
			t.Errorf("%s as %q: %d %.100q (%v), want %d", c.method, c.user, r.StatusCode, body, err, c.want)
		}
	}
}

// failingManager cannot read the counters.
type failingManager struct{ fakeManager }

func (m *failingManager) Stats(context.Context) ([]api.FunctionStats, error) {
	return nil, fmt.Errorf("read the counters of slot 3: %w", io.ErrUnexpectedEOF)
}

func TestMetricsFail(t *testing.T) {
	g := New(Config{Manager: &failingManager{}})
	r := do(t, g.Private(), "GET", "/metrics", "")
	if text := bodyOf(t, r); r.StatusCode != http.StatusInternalServerError || !strings.Contains(text, "read the counters of slot 3") {
		t.Errorf("%s %q", r.Status, text)
	}
}

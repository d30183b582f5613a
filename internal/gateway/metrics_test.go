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

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
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

// Each call is counted by the status that it was answered with, and none of what there is not.
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

// A removed function is not told of any more.
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

// An answer that breaks off after its status is not counted as one of that.
func TestBrokenAnswerIsCounted(t *testing.T) {
	out := &reply{w: httptest.NewRecorder()}
	out.http = http.NewResponseController(out.w)
	if _, err := out.Write(make([]byte, holdBack+1)); err != nil || out.status != http.StatusOK {
		t.Fatalf("status %d, %v", out.status, err)
	}
	out.refuse(out.end(lambdanic.Response{Status: api.StatusFailed}))
	if !out.broken || out.status != http.StatusBadGateway {
		t.Errorf("broken %t, status %d", out.broken, out.status)
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

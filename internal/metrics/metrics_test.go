package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A fakeSource has these functions, and fails where it is told to.
type fakeSource struct {
	functions             []api.Function
	namespaces            []api.Namespace
	unaccounted           error
	stats                 []api.FunctionStats
	nics                  map[string][]backend.Counter
	ikernels              []api.Ikernel
	noIkernel             error
	list, counters, noNIC error
}

func (f *fakeSource) List(context.Context, string) ([]api.Function, error) {
	return f.functions, f.list
}

func (f *fakeSource) Stats(context.Context) ([]api.FunctionStats, error) { return f.stats, f.counters }

func (f *fakeSource) Namespaces(context.Context) ([]api.Namespace, error) {
	return f.namespaces, f.unaccounted
}

// filled is a source whose numbers are all different.
func filled() *fakeSource {
	next := uint64(1000)
	fill := func(v any) {
		for _, field := range reflect.ValueOf(v).Elem().Fields() {
			if field.Kind() == reflect.Uint64 {
				next++
				field.SetUint(next)
			}
		}
	}
	s := &fakeSource{
		functions: []api.Function{{Name: "echo", Namespace: "tenant", Replicas: 1, AvailableReplicas: 1}, {Name: "idle", Namespace: "default", Replicas: 1}},
		stats:     []api.FunctionStats{{Name: "echo", Namespace: "tenant", Target: api.TargetNIC}},
		nics:      map[string][]backend.Counter{},
	}
	stats := &s.stats[0].Stats
	fill(stats)
	for i := range stats.FaultsBy {
		stats.FaultsBy[i] = uint64(100 + i)
	}
	stats.Histogram[10], stats.Histogram[11], stats.Samples = 3, 4, 7
	lambdas, quota := &api.Stats{}, uint64(1<<20)
	fill(lambdas)
	lambdas.Histogram[5], lambdas.Samples = 2, 2
	s.namespaces = []api.Namespace{
		{Name: "default", Use: api.NamespaceUse{Lambdas: 1, Memory: 77}}, // no NIC counts
		{Name: "tenant", Number: 2, Quota: api.Quota{Memory: &quota}, Use: api.NamespaceUse{Lambdas: 3, Memory: 99}, Stats: lambdas},
	}
	for _, name := range []string{"eth1", "eth2"} {
		for _, counter := range []string{"passed", "busy"} {
			next++
			s.nics[name] = append(s.nics[name], backend.Counter{Name: counter, Help: "What the NIC says of it.", Value: next})
		}
	}
	for _, name := range []string{"one", "two"} {
		next++
		s.ikernels = append(s.ikernels, api.Ikernel{
			IkernelRequest: api.IkernelRequest{Ikernel: "fast-echo", Name: name}, State: api.IkernelAttached,
			Counters: []api.Counter{{Name: "echoes", Help: "What the ikernel says of it.", Value: next}},
		})
	}
	s.ikernels[1].Namespace = "tenant"
	s.ikernels = append(s.ikernels, api.Ikernel{IkernelRequest: api.IkernelRequest{Ikernel: "fast-echo", Name: "three"}, State: api.IkernelWaiting})
	return s
}

func config(s *fakeSource) Config {
	calls := NewCalls(func(namespace, _ string) bool { return namespace == "tenant" })
	calls.Record("tenant", "echo", http.StatusOK, time.Millisecond)
	return Config{
		Source: s, NICs: func() (map[string][]backend.Counter, error) { return s.nics, s.noNIC },
		Ikernels: func() ([]api.Ikernel, error) { return s.ikernels, s.noIkernel },
		Calls:    calls, Version: "1.2.3", Commit: "c0ffee",
		Log: slog.New(slog.DiscardHandler),
	}
}

func get(t *testing.T, cfg Config) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(cfg).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	return w
}

// scrape reads the metrics as Prometheus does.
func scrape(t *testing.T, cfg Config) map[string]*dto.MetricFamily {
	t.Helper()
	w := get(t, cfg)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d, %v", w.Code, err)
	}
	return families
}

// series gives the values of counters and gauges, by their labels' values.
func series(f *dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for _, m := range f.GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() { // sorted by name
			labels = append(labels, l.GetValue())
		}
		values[strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return values
}

// All that is counted is served, each under its name.
func TestEveryCounter(t *testing.T) {
	s := filled()
	families := scrape(t, config(s))
	stats := &s.stats[0].Stats
	for name, field := range map[string]uint64{
		"requests": stats.Requests, "replies": stats.Replies, "errors": stats.Errors, "drops": stats.Drops, "external_calls": stats.Calls,
		"late": stats.Late, "received_bytes": stats.BytesIn, "sent_bytes": stats.BytesOut,
	} {
		name = "lambdanic_function_" + name + "_total"
		if got, want := series(families[name]), map[string]float64{"echo.tenant nic": float64(field)}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	byCause := series(families[faults])
	for i := range stats.FaultsBy {
		cause := api.Fault(i).String()
		if got, ok := byCause[cause+" echo.tenant nic"]; ok != (cause != "") || ok && got != float64(100+i) {
			t.Errorf("faults by %q: %v, %t", cause, got, ok)
		}
	}
	h := families["lambdanic_function_run_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 7 || h.GetSampleSum() != float64(stats.SampledNS)/1e9 {
		t.Errorf("histogram %v", h)
	}
	for i, counter := range s.nics["eth1"] {
		name, want := "lambdanic_nic_"+counter.Name+"_total", map[string]float64{}
		for nic, counters := range s.nics {
			want[nic] = float64(counters[i].Value)
		}
		if got := series(families[name]); !reflect.DeepEqual(got, want) || families[name].GetHelp() != counter.Help {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]map[string]float64{
		"gateway_service_count":             {"echo.tenant": 1, "idle.default": 0},
		"gateway_function_invocation_total": {"200 echo.tenant": 1},
		"lambdanic_build_info":              {"c0ffee 1.2.3": 1},
		"lambdanic_ikernel_attached":        {"fast-echo one ": 1, "fast-echo two tenant": 1, "fast-echo three ": 0},
		"lambdanic_ikernel_fast_echo_echoes_total": {
			"one ": float64(s.ikernels[0].Counters[0].Value), "two tenant": float64(s.ikernels[1].Counters[0].Value),
		},
	} {
		if got := series(families[name]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if families["go_goroutines"] == nil || families["process_resident_memory_bytes"] == nil {
		t.Error("nothing is said of the process")
	}
}

// Namespaces have the same counters as functions, where a NIC counts, and series of a quota where there is one.
func TestNamespaceNumbers(t *testing.T) {
	s := filled()
	families := scrape(t, config(s))
	stats := s.namespaces[1].Stats
	for name, want := range map[string]map[string]float64{
		"lambdas": {"default": 1, "tenant": 3}, "memory_bytes": {"default": 77, "tenant": 99}, "memory_quota_bytes": {"tenant": 1 << 20},
		"lambdas_quota": {}, "requests_total": {"tenant": float64(stats.Requests)}, "replies_total": {"tenant": float64(stats.Replies)},
		"errors_total": {"tenant": float64(stats.Errors)}, "drops_total": {"tenant": float64(stats.Drops)},
		"external_calls_total": {"tenant": float64(stats.Calls)}, "faults_total": {"tenant": float64(stats.Faults)},
		"late_total": {"tenant": float64(stats.Late)}, "received_bytes_total": {"tenant": float64(stats.BytesIn)},
		"sent_bytes_total": {"tenant": float64(stats.BytesOut)},
	} {
		if got := series(families["lambdanic_namespace_"+name]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	h := families["lambdanic_namespace_run_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != 2 || h.GetSampleSum() != float64(stats.SampledNS)/1e9 {
		t.Errorf("histogram %v", h)
	}
}

// A bound includes exactly the times up to it, wherever the data path counted them.
func TestRunTimes(t *testing.T) {
	for _, ns := range []uint64{1, 2, 3, 4, 127, 128, 1000, 1<<31 - 1, 1 << 31, 1<<32 - 1} {
		s := filled()
		stats := &s.stats[0].Stats
		stats.Histogram = [32]uint64{}
		stats.Histogram[bits.Len64(ns)-1] = 1 // as ln_sample_end() of bpf/stats.h does
		h := scrape(t, config(s))["lambdanic_function_run_seconds"].GetMetric()[0].GetHistogram()
		if n := len(h.GetBucket()); n != len(stats.Histogram)+1 { // and infinity
			t.Errorf("%d buckets", n)
		}
		for _, b := range h.GetBucket() {
			if within := float64(ns)/1e9 <= b.GetUpperBound(); within != (b.GetCumulativeCount() == 1) {
				t.Errorf("a run of %d ns, up to %v s: %d", ns, b.GetUpperBound(), b.GetCumulativeCount())
			}
		}
	}
}

// The names satisfy Prometheus' own linter, except for one of OpenFaaS's; and all served metrics are described.
func TestNames(t *testing.T) {
	problems, err := testutil.GatherAndLint(newRegistry(config(filled())))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if p.Metric != "gateway_service_count" {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	pedantic := prometheus.NewPedanticRegistry()
	pedantic.MustRegister(&collector{config(filled())}, &namespaceCollector{config(filled())})
	if _, err := pedantic.Gather(); err != nil {
		t.Error(err)
	}
}

// Without one of its sources, a scrape fails, and says why.
func TestFailingSources(t *testing.T) {
	for want, fail := range map[string]func(*fakeSource){
		"list the functions: no store":                func(s *fakeSource) { s.list = errors.New("no store") },
		"read the namespaces' numbers: no such map":   func(s *fakeSource) { s.unaccounted = errors.New("no such map") },
		"read the functions' counters: no such map":   func(s *fakeSource) { s.counters = errors.New("no such map") },
		"read the counters of one: it is closed":      func(s *fakeSource) { s.noIkernel = errors.New("read the counters of one: it is closed") },
		"read the counters of NIC eth1: it is closed": func(s *fakeSource) { s.noNIC = errors.New("read the counters of NIC eth1: it is closed") },
	} {
		s := filled()
		fail(s)
		w := get(t, config(s))
		if text := w.Body.String(); w.Code != http.StatusInternalServerError || !strings.Contains(text, want) || strings.Contains(text, "# TYPE") {
			t.Errorf("%s: %d %.200q", want, w.Code, text)
		}
	}
}

// docs/operations.md has all metrics, with the text that Prometheus gets. internal/nic tests the NICs' own.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(text), "\n")
	for name, f := range scrape(t, config(filled())) {
		ours := strings.HasPrefix(name, "lambdanic_function_") || strings.HasPrefix(name, "lambdanic_namespace_") || strings.HasPrefix(name, "gateway_") || name == "lambdanic_ikernel_attached"
		documented := func(row string) bool {
			return strings.HasPrefix(row, fmt.Sprintf("| `%s`", name)) && strings.HasSuffix(row, fmt.Sprintf("| %s |", f.GetHelp()))
		}
		if ours && !slices.ContainsFunc(rows, documented) {
			t.Errorf("there is no row of %s: %s", name, f.GetHelp())
		}
	}
	for _, c := range FunctionCounters {
		row := fmt.Sprintf("| `%s` | %s | %s |", c.Name, c.Column, c.Help)
		if c.Column != "" && !slices.Contains(rows, row) {
			t.Errorf("there is no row %q", row)
		}
	}
}

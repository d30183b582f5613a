// Package metrics gives an instance's numbers to Prometheus: GET /metrics of the gateway. They are read on each scrape, except for
// calls by HTTP, which the gateway counts as it answers (Calls).
package metrics

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// Source knows the functions, the namespaces, and their counters.
type Source interface {
	List(ctx context.Context, namespace string) ([]api.Function, error)
	Stats(ctx context.Context) ([]api.FunctionStats, error)
	Namespaces(ctx context.Context) ([]api.Namespace, error)
}

// Config says what is served.
type Config struct {
	Source Source
	// NICs reads the counters of every NIC, by the name of its interface. It is nil where there is never a NIC.
	NICs func() (map[string][]backend.Counter, error)
	// Ikernels describes every ikernel. It is nil where there is never one.
	Ikernels func() ([]api.Ikernel, error)
	Calls    *Calls
	Version  string
	Commit   string // "" where it is not known
	Log      *slog.Logger
}

// Handler answers in Prometheus' formats. Where a source fails, it answers 500 with the reason: missing numbers raise an alert, but
// incomplete ones may raise a wrong one.
func Handler(cfg Config) http.Handler {
	return promhttp.HandlerFor(newRegistry(cfg), promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn)})
}

// newRegistry makes a registry without the default one's metrics, to which the store's libraries add their own.
func newRegistry(cfg Config) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), cfg.Calls, &collector{cfg}, &namespaceCollector{cfg}, nicCollector{cfg}, ikernelCollector{cfg},
	)
	return r
}

// labelFunction is OpenFaaS's label for the function of a number.
const labelFunction = "function_name"

// functionName is its value, as OpenFaaS writes it.
func functionName(namespace, name string) string { return name + "." + namespace }

package metrics

import (
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// callSeconds are the bounds of the histogram of calls. A lambda on the NIC answers in microseconds, a lambda that waits for a service in
// milliseconds; the bounds of OpenFaaS's gateway, from 5 ms on, are among them.
var callSeconds = []float64{
	10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// Calls counts the calls by HTTP that a gateway answered, under the names of OpenFaaS's gateway: its dashboards and
// autoscalers know these. Only existing functions have series, so that requests for other names make none.
type Calls struct {
	exists  func(namespace, name string) bool
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec

	series atomic.Pointer[map[callKey]callSeries] // replaced as a whole, so that a call finds its own without a lock
	mu     sync.Mutex                             // held while series are made or removed
}

type callKey struct {
	namespace, name string
	code            int
}

type callSeries struct {
	total   prometheus.Counter
	seconds prometheus.Observer
}

// NewCalls returns Calls that use exists to check whether a function exists.
func NewCalls(exists func(namespace, name string) bool) *Calls {
	labels := []string{labelFunction, "code"}
	c := &Calls{
		exists: exists,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_function_invocation_total",
			Help: "Calls by HTTP that the gateway answered, by status. One whose answer breaks off has the status of what was wrong.",
		}, labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gateway_functions_seconds",
			Help:    "How long calls by HTTP took the gateway, until their answer was written.",
			Buckets: callSeconds,
		}, labels),
	}
	c.series.Store(new(map[callKey]callSeries))
	return c
}

// Record counts a call of a function that existed when it was called.
func (c *Calls) Record(namespace, name string, code int, took time.Duration) {
	s, ok := (*c.series.Load())[callKey{namespace, name, code}]
	if !ok {
		if s, ok = c.begin(callKey{namespace, name, code}); !ok {
			return
		}
	}
	s.total.Inc()
	s.seconds.Observe(took.Seconds())
}

// begin makes the series of a function's first answer with a status. ok is false where the function is gone.
func (c *Calls) begin(k callKey) (s callSeries, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := (*c.series.Load())[k]; ok {
		return s, true
	}
	if !c.exists(k.namespace, k.name) {
		return s, false
	}
	k.namespace, k.name = strings.Clone(k.namespace), strings.Clone(k.name) // substrings of a request
	name, code := functionName(k.namespace, k.name), strconv.Itoa(k.code)
	s = callSeries{c.total.WithLabelValues(name, code), c.seconds.WithLabelValues(name, code)}
	next := c.remaining() // here too, as metrics may never be read
	next[k] = s
	c.series.Store(&next)
	return s, true
}

// remaining copies the series without those of removed functions, which it deletes. c.mu is held.
func (c *Calls) remaining() map[callKey]callSeries {
	next := maps.Clone(*c.series.Load())
	if next == nil {
		next = map[callKey]callSeries{}
	}
	for k := range next {
		if !c.exists(k.namespace, k.name) {
			name, code := functionName(k.namespace, k.name), strconv.Itoa(k.code)
			c.total.DeleteLabelValues(name, code)
			c.seconds.DeleteLabelValues(name, code)
			delete(next, k)
		}
	}
	return next
}

// Describe implements prometheus.Collector.
func (c *Calls) Describe(ch chan<- *prometheus.Desc) {
	c.total.Describe(ch)
	c.seconds.Describe(ch)
}

// Collect implements prometheus.Collector.
func (c *Calls) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	next := c.remaining()
	c.series.Store(&next)
	c.mu.Unlock()
	c.total.Collect(ch)
	c.seconds.Collect(ch)
}

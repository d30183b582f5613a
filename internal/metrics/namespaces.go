package metrics

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lambdanic/lambdanic/api"
)

// A namespaceCollector reads the namespaces' numbers on each scrape.
type namespaceCollector struct{ Config }

// A namespaceGauge is one number of a namespace. It has no series where read gives nil.
type namespaceGauge struct {
	desc *prometheus.Desc
	read func(*api.Namespace) *float64
}

var labelsOfNamespace = []string{"namespace"}

func gauge(name, help string, read func(*api.Namespace) *float64) namespaceGauge {
	return namespaceGauge{prometheus.NewDesc("lambdanic_namespace_"+name, help, labelsOfNamespace, nil), read}
}

var namespaceGauges = []namespaceGauge{
	gauge("lambdas", "Functions that are deployed in the namespace.", func(n *api.Namespace) *float64 { return scaled(&n.Use.Lambdas, 1) }),
	gauge("lambdas_quota", "How many functions may be deployed there. Without a quota there is no series.", func(n *api.Namespace) *float64 { return scaled(n.Quota.Lambdas, 1) }),
	gauge("memory_bytes", "Memory of the functions together: their maps and code.", func(n *api.Namespace) *float64 { return scaled(&n.Use.Memory, 1) }),
	gauge("memory_quota_bytes", "How much memory they may have. Without a quota there is no series.", func(n *api.Namespace) *float64 { return scaled(n.Quota.Memory, 1) }),
	gauge("requests_quota", "How many requests per second the NIC may serve for it. Without a quota there is no series.", func(n *api.Namespace) *float64 {
		return scaled(n.Quota.Requests, 1)
	}),
	gauge("nic_seconds_quota", "How many seconds per second its lambdas may run on the NIC. Without a quota there is no series.", func(n *api.Namespace) *float64 {
		return scaled(n.Quota.NICTime, 1e-9)
	}),
	gauge("weight", "The weight of its share of the NIC's budget.", func(n *api.Namespace) *float64 {
		w := n.Quota.ShareWeight()
		return scaled(&w, 1)
	}),
}

// scaled is a limit in another unit; nil for none.
func scaled(limit *uint64, unit float64) *float64 {
	if limit == nil {
		return nil
	}
	v := float64(*limit) * unit
	return &v
}

// namespaceCounters are the functions' counters, in the order of FunctionCounters. Faults have no causes here.
var namespaceCounters = describeNamespaceCounters()

func describeNamespaceCounters() (descs []*prometheus.Desc) {
	for _, c := range FunctionCounters {
		name := strings.Replace(c.Name, "lambdanic_function_", "lambdanic_namespace_", 1)
		descs = append(descs, prometheus.NewDesc(name, ofNamespace(c.Name), labelsOfNamespace, nil))
	}
	return descs
}

// ofNamespace says what is counted of a namespace: what is counted of functions.
func ofNamespace(function string) string {
	return "The sum of " + function + " over all lambdas that the namespace has or had on NICs."
}

var namespaceRunSeconds = prometheus.NewDesc("lambdanic_namespace_run_seconds", ofNamespace("lambdanic_function_run_seconds"), labelsOfNamespace, nil)

// Describe implements prometheus.Collector.
func (c *namespaceCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range namespaceGauges {
		ch <- g.desc
	}
	for _, d := range namespaceCounters {
		ch <- d
	}
	ch <- namespaceRunSeconds
}

// Collect implements prometheus.Collector.
func (c *namespaceCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := c.Source.Namespaces(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(namespaceGauges[0].desc, fmt.Errorf("read the namespaces' numbers: %w", err))
	}
	for i := range list {
		namespace(&list[i], ch)
	}
}

func namespace(n *api.Namespace, ch chan<- prometheus.Metric) {
	for _, g := range namespaceGauges {
		if v := g.read(n); v != nil {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, *v, n.Name)
		}
	}
	if n.Stats == nil {
		return
	}
	for i, c := range FunctionCounters {
		ch <- prometheus.MustNewConstMetric(namespaceCounters[i], prometheus.CounterValue, float64(c.Value(n.Stats)), n.Name)
	}
	ch <- runTimes(namespaceRunSeconds, n.Stats, n.Name)
}

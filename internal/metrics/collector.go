package metrics

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lambdanic/lambdanic/api"
)

// patience bounds the reading for a scrape: Prometheus waits for ten seconds.
const patience = 10 * time.Second

var (
	serviceCount = prometheus.NewDesc("gateway_service_count", "Replicas that serve the function: 1, or 0 where it does not run.", []string{labelFunction}, nil)
	runSeconds   = prometheus.NewDesc("lambdanic_function_run_seconds", RunTime, []string{labelFunction, "target"}, nil)
	buildInfo    = prometheus.NewDesc("lambdanic_build_info", "1, with what was built in the labels.", []string{"version", "commit"}, nil)

	functionDescs = describeFunctions()
)

func describeFunctions() (descs []*prometheus.Desc) {
	for _, c := range FunctionCounters {
		labels := []string{labelFunction, "target"}
		if c.Name == faults {
			labels = append(labels, "cause")
		}
		descs = append(descs, prometheus.NewDesc(c.Name, c.Help, labels, nil))
	}
	return descs
}

// A collector reads the functions' numbers on each scrape.
type collector struct{ Config }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{serviceCount, runSeconds, buildInfo}, functionDescs...) {
		ch <- d
	}
}

// Collect implements prometheus.Collector. An invalid metric makes the scrape fail.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ch <- prometheus.MustNewConstMetric(buildInfo, prometheus.GaugeValue, 1, c.Version, c.Commit)
	if err := c.services(ctx, ch); err != nil {
		ch <- prometheus.NewInvalidMetric(serviceCount, fmt.Errorf("list the functions: %w", err))
	}
	if err := c.functions(ctx, ch); err != nil {
		ch <- prometheus.NewInvalidMetric(functionDescs[0], fmt.Errorf("read the functions' counters: %w", err))
	}
}

func (c *collector) services(ctx context.Context, ch chan<- prometheus.Metric) error {
	list, err := c.Source.List(ctx, "")
	for i := range list {
		f := &list[i]
		ch <- prometheus.MustNewConstMetric(serviceCount, prometheus.GaugeValue, float64(f.AvailableReplicas), functionName(f.Namespace, f.Name))
	}
	return err
}

func (c *collector) functions(ctx context.Context, ch chan<- prometheus.Metric) error {
	all, err := c.Source.Stats(ctx)
	for i := range all {
		function(&all[i], ch)
	}
	return err
}

func function(s *api.FunctionStats, ch chan<- prometheus.Metric) {
	name, target := functionName(s.Namespace, s.Name), string(s.Target)
	for i, c := range FunctionCounters {
		if c.Name != faults {
			ch <- prometheus.MustNewConstMetric(functionDescs[i], prometheus.CounterValue, float64(c.Value(&s.Stats)), name, target)
			continue
		}
		// All causes from the beginning: a rate needs the zero before the first fault.
		for cause, n := range s.FaultsBy {
			if cause := api.Fault(cause).String(); cause != "" {
				ch <- prometheus.MustNewConstMetric(functionDescs[i], prometheus.CounterValue, float64(n), name, target, cause)
			}
		}
	}
	ch <- runTimes(runSeconds, &s.Stats, name, target)
}

// runTimes turns a histogram of times in [2^i, 2^(i+1)) ns into Prometheus's. Prometheus counts a bound into its bucket, hence the nanosecond
// less. The count is the sum of the buckets: a run between reading count and buckets would be in only one of them.
func runTimes(desc *prometheus.Desc, s *api.Stats, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(s.Histogram))
	var below uint64
	for i, n := range s.Histogram {
		below += n
		buckets[float64(uint64(2)<<i-1)/1e9] = below
	}
	return prometheus.MustNewConstHistogram(desc, below, float64(s.SampledNS)/1e9, buckets, labels...)
}

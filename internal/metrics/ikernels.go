package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lambdanic/lambdanic/api"
)

// An ikernelCollector reads the ikernels' counters on each scrape. As with NICs, only the ikernels know which counters there are.
type ikernelCollector struct{ Config }

// Describe implements prometheus.Collector.
func (ikernelCollector) Describe(chan<- *prometheus.Desc) {}

var ikernelAttached = prometheus.NewDesc("lambdanic_ikernel_attached",
	"1 where the ikernel is attached, 0 where it waits until it can be.", []string{"ikernel", "name", "namespace"}, nil)

// Collect implements prometheus.Collector.
func (c ikernelCollector) Collect(ch chan<- prometheus.Metric) {
	if c.Ikernels == nil {
		return
	}
	list, err := c.Ikernels()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for _, i := range list {
		attached := 0.0
		if i.State == api.IkernelAttached {
			attached = 1
		}
		ch <- prometheus.MustNewConstMetric(ikernelAttached, prometheus.GaugeValue, attached, i.Ikernel, i.Name, i.Namespace)
		prefix := "lambdanic_ikernel_" + strings.ReplaceAll(i.Ikernel, "-", "_") + "_"
		for _, counter := range i.Counters {
			desc := prometheus.NewDesc(prefix+counter.Name+"_total", counter.Help, []string{"name", "namespace"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(counter.Value), i.Name, i.Namespace)
		}
	}
}

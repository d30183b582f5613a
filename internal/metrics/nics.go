package metrics

import "github.com/prometheus/client_golang/prometheus"

// A nicCollector reads the NICs' counters on each scrape. The NICs say which counters exist (backend.Counter). So it describes none before, and
// is unchecked in Prometheus' terms.
type nicCollector struct{ Config }

// Describe implements prometheus.Collector.
func (nicCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. An invalid metric makes the scrape fail.
func (c nicCollector) Collect(ch chan<- prometheus.Metric) {
	if c.NICs == nil {
		return
	}
	all, err := c.NICs()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	for nic, counters := range all {
		for _, counter := range counters {
			desc := prometheus.NewDesc("lambdanic_nic_"+counter.Name+"_total", counter.Help, []string{"nic"}, nil)
			ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(counter.Value), nic)
		}
	}
}

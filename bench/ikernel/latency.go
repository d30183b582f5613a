package ikernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
)

const (
	lowRate = 5_000 // requests per second that hardly keep memcached busy
	strain  = 0.9   // of what memcached alone sustains

	offers = 100 // at most, of one load, until it has a reply
)

// shares of what memcached alone sustains, at which hits are timed.
var shares = []float64{0.25, 0.5, 0.75}

// A timing is a load whose latencies both sides have.
type timing struct {
	name, title string
	trace       trace
	rate        float64
	kind        int // of the replies that the cached side is timed by
	all         map[string]*hdrhistogram.Histogram
	p50, p99    map[string]report.Samples
}

func newTiming(name, title string, t trace, rate float64, kind int) *timing {
	return &timing{
		name: name, title: fmt.Sprintf("%s at %s/s", title, report.Number(rate)), trace: t, rate: rate, kind: kind,
		all: map[string]*hdrhistogram.Histogram{alone: measure.NewHistogram(), cached: measure.NewHistogram()},
		p50: map[string]report.Samples{}, p99: map[string]report.Samples{},
	}
}

// latency measures how long hits and misses take, against memcached alone at the same rate. memcached has one thread, and a CPU to itself: this
// process, which generates and fetches values for the cache, keeps to another one.
func (b *bench) latency(ctx context.Context) error {
	hot, cold, skewed := b.hot(), b.cold(), b.skewed(0.002)
	return b.withSite(ctx, 1, b.Keys, func(s sites) (err error) {
		unpin, err := pin(s)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unpin()) }()
		most, err := b.capacity(ctx, s, "hot_rate", hot)
		if err != nil {
			return err
		}
		strained, err := b.capacity(ctx, s, "zipf_rate", skewed)
		if err != nil {
			return err
		}
		var hits []*timing
		for _, share := range shares {
			hits = append(hits, newTiming(fmt.Sprintf("hit_at_%.0f%%", 100*share), "hits", hot, share*most, gen.Cached))
		}
		low := newTiming("miss_at_5000", "misses", cold, lowRate, gen.Served)
		high := newTiming("miss_strained", "misses", skewed, strain*strained, gen.Served)
		for _, group := range [][]*timing{hits, {low}, {high}} {
			if err := b.time(ctx, s, group); err != nil {
				return err
			}
		}
		return b.Plot("memcached-latency.svg", func(w io.Writer) error {
			return report.Latency(w, []report.Panel{hits[1].panel(), low.panel(), high.panel()})
		})
	})
}

// pin gives the memcacheds a CPU of their own, and this process, which generates and fetches, another one. unpin gives this process all again.
func pin(all sites) (unpin func() error, err error) {
	for _, s := range all {
		if err := measure.PinProcess(s.server.PID(), measure.ServerCPU()); err != nil {
			return nil, err
		}
	}
	cpus := measure.GeneratorCPUs()
	unpin = func() error { return measure.PinProcess(os.Getpid(), cpus[len(cpus)-1]...) }
	return unpin, measure.PinProcess(os.Getpid(), measure.ClientCPU)
}

// capacity is what memcached alone sustains.
func (b *bench) capacity(ctx context.Context, s sites, name string, t trace) (rate float64, err error) {
	err = b.with(ctx, s, alone, t, func(d *side) error {
		c, err := b.curve(ctx, d, []int{measure.ClientCPU}, 0)
		rate = c.Open.Rate()
		return err
	})
	b.add(report.Compare("latency."+name, "1/s", report.Higher, sourceRate, report.Samples{rate}, nil))
	return rate, err
}

// time measures loads of one trace.
func (b *bench) time(ctx context.Context, s sites, group []*timing) error {
	err := b.rounds(group[0].title, func(name string) error {
		return b.with(ctx, s, name, group[0].trace, func(d *side) error {
			for _, t := range group {
				if err := t.sample(ctx, d, name, 4*b.Run); err != nil {
					return err
				}
			}
			return nil
		})
	})
	for _, t := range group {
		b.compare("latency."+t.name+".p50", "µs", report.Lower, sourceLatency, t.p50)
		b.compare("latency."+t.name+".p99", "µs", report.Lower, sourceLatency, t.p99)
	}
	return err
}

// sample times one load. Each frame leaves at once, and not with those that are due next.
func (t *timing) sample(ctx context.Context, d *side, name string, long time.Duration) error {
	kind := t.kind
	if name == alone {
		kind = gen.Served
	}
	h := measure.NewHistogram()
	for range offers {
		r, err := d.offer(ctx, gen.Load{Rate: t.rate, CPUs: []int{measure.ClientCPU}, Batch: 1, Duration: long, Stamp: true})
		if err != nil {
			return err
		}
		for ns, n := range r.Latencies[kind].All() {
			if err := h.RecordValues(ns, int64(n)); err != nil {
				return fmt.Errorf("record a latency of %v: %w", time.Duration(ns), err)
			}
		}
		if h.TotalCount() > 0 {
			break
		}
	}
	t.all[name].Merge(h)
	t.p50[name] = append(t.p50[name], float64(h.ValueAtPercentile(50))/1e3)
	t.p99[name] = append(t.p99[name], float64(h.ValueAtPercentile(99))/1e3)
	return nil
}

// panel is the plot of one load.
func (t *timing) panel() report.Panel {
	p := report.Panel{Title: t.title}
	for _, name := range []string{cached, alone} {
		p.Curves = append(p.Curves, report.Curve{Name: name, Points: measure.Points(t.all[name])})
	}
	return p
}

package measure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/report"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// Call is a request and the answer that it must get.
type Call struct {
	Method uint32
	Body   []byte
	Want   []byte
}

// Latency is the result of a closed loop of one client.
type Latency struct {
	Histogram *hdrhistogram.Histogram // of nanoseconds
	Elapsed   time.Duration
}

// Rate is calls per second.
func (l Latency) Rate() float64 { return float64(l.Histogram.TotalCount()) / l.Elapsed.Seconds() }

// Micros is a percentile in µs.
func (l Latency) Micros(percent float64) float64 {
	return float64(l.Histogram.ValueAtPercentile(percent)) / 1e3
}

// NewHistogram takes nanoseconds up to ten seconds.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(100, int64(10*time.Second), 3)
}

// Points are the histogram's percentiles, for a plot.
func Points(h *hdrhistogram.Histogram) (points []report.Point) {
	for _, b := range h.CumulativeDistributionWithTicks(10) {
		points = append(points, report.Point{Percent: b.Quantile, Micros: float64(b.ValueAt) / 1e3})
	}
	return points
}

// CallFor makes the calls in turn, one after the other, until the time is over, and checks every answer. The client is
// an ordinary one: it sleeps in recv() until the answer comes. The NIC's answer is mostly there when recv() is called.
func CallFor(ctx context.Context, addr string, calls []Call, d time.Duration, cpu int, opts ...lambdanic.Option) (Latency, error) {
	conn, err := lambdanic.DialConn(addr, append(opts, lambdanic.WithTimeout(10*time.Second))...)
	if err != nil {
		return Latency{}, err
	}
	defer conn.Close()
	l := Latency{Histogram: NewHistogram()}
	err = OnCPU(cpu, func() error { return l.fill(ctx, conn, calls, d) })
	return l, err
}

func (l *Latency) fill(ctx context.Context, conn *lambdanic.Conn, calls []Call, d time.Duration) error {
	for range min(100, 10*len(calls)) { // connections, caches and the reply's length are learnt
		if err := callOne(ctx, conn, calls[0]); err != nil {
			return err
		}
	}
	start := time.Now()
	for i, before := 0, start; l.Elapsed < d; i++ {
		if err := callOne(ctx, conn, calls[i%len(calls)]); err != nil {
			return err
		}
		now := time.Now()
		if err := l.Histogram.RecordValue(now.Sub(before).Nanoseconds()); err != nil {
			return fmt.Errorf("record a latency of %v: %w", now.Sub(before), err)
		}
		before, l.Elapsed = now, now.Sub(start)
	}
	return nil
}

// closedRate is the calls per second of as many clients as there are CPUs, each on its own.
func (s *Side) closedRate(ctx context.Context) (rate float64, err error) {
	parts := make([]Latency, runtime.NumCPU())
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for cpu := range parts {
		wg.Go(func() { parts[cpu], errs[cpu] = CallFor(ctx, s.Addr, s.work.Calls, s.work.Duration, cpu) })
	}
	wg.Wait()
	for _, p := range parts {
		rate += p.Rate()
	}
	return rate, errors.Join(errs...)
}

func callOne(ctx context.Context, conn *lambdanic.Conn, c Call) error {
	r, err := conn.Call(ctx, lambdanic.Request{Workload: Workload, Method: c.Method, Body: c.Body})
	if err != nil {
		return err
	}
	if r.Status != api.StatusOK || !bytes.Equal(r.Body, c.Want) {
		return fmt.Errorf("%w: status %d and %d bytes, want status 0 and %d bytes", ErrWrong, r.Status, len(r.Body), len(c.Want))
	}
	return nil
}

// Package timeline follows what sharers are delivered over time, while the load and their weights change.
package timeline

import (
	"context"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/internal/chart"
)

const (
	sampleTime = 10 * time.Millisecond
	smooth     = 5 // samples of which a share is told
	tolerance  = 3 // points
)

// Settled is how many samples of a phase its figures leave out: 200 ms.
const Settled = 20

// A Load goes to several sharers in phases, one after the other without a pause.
type Load struct {
	Sharers   []string // their names; "" shows one as the one before it
	Unit      string   // of a thousand a second of what is delivered, for plots
	Phases    int
	Samples   int                                              // of each phase, of 10 ms
	Offer     func(ctx context.Context, d time.Duration) error // offers it for so long, from the first phase on
	Begin     func(ctx context.Context, phase int) error       // changes what is offered, and by which weights it is shared
	Delivered func() ([]float64, error)                        // to each sharer, since any time
}

// A Timeline is what sharers were delivered, phase after phase.
type Timeline struct {
	load   Load
	counts [][]float64 // after each sampleTime, of each sharer; the first is from before
	times  []time.Time
}

// Follow offers a load. Time begins with the first delivery.
func Follow(ctx context.Context, l Load) (*Timeline, error) {
	if err := l.Begin(ctx, 0); err != nil {
		return nil, err
	}
	t := &Timeline{load: l}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.Offer(ctx, time.Duration(l.Phases*l.Samples)*sampleTime) })
	group.Go(func() error { return t.watch(ctx) })
	return t, group.Wait()
}

// watch samples what is delivered, and begins each phase.
func (t *Timeline) watch(ctx context.Context) error {
	tick := time.NewTicker(sampleTime)
	defer tick.Stop()
	for samples := 0; ; samples = len(t.counts) - 1 {
		if samples > 0 && samples%t.load.Samples == 0 {
			at := samples / t.load.Samples
			if at == t.load.Phases {
				return nil
			}
			if err := t.load.Begin(ctx, at); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		now, err := t.load.Delivered()
		if err != nil {
			return err
		}
		t.add(now, time.Now())
	}
}

// add adds a sample. Until something is delivered, there is one, which it replaces.
func (t *Timeline) add(now []float64, at time.Time) {
	if len(t.counts) == 1 && Sum(now) == Sum(t.counts[0]) {
		t.times[0] = at
		return
	}
	t.counts, t.times = append(t.counts, now), append(t.times, at)
}

// between are the rates from one sample to another.
func (t *Timeline) between(from, to int) []float64 {
	rates := make([]float64, len(t.load.Sharers))
	for i := range rates {
		rates[i] = (t.counts[to][i] - t.counts[from][i]) / t.times[to].Sub(t.times[from]).Seconds()
	}
	return rates
}

// Rates are what each sharer was delivered per second in a phase, once that has settled.
func (t *Timeline) Rates(phase int) []float64 {
	return t.between(phase*t.load.Samples+Settled, (phase+1)*t.load.Samples)
}

// Settling says after how many milliseconds of a phase the shares were those wanted within 3 points, in that moment and from then on together.
func (t *Timeline) Settling(phase int, shares []float64) float64 {
	begin, end := phase*t.load.Samples, (phase+1)*t.load.Samples
	at := begin + smooth
	for at < end && max(Deviation(t.between(at-smooth, at), shares), Deviation(t.between(at, end), shares)) > tolerance {
		at++
	}
	return float64(at-begin) * float64(sampleTime.Milliseconds())
}

// Chart shows the rates over time.
func (t *Timeline) Chart(title string) chart.Chart {
	c := chart.Chart{Title: title, X: chart.Axis{Label: "time (s)"}, Y: chart.Axis{Label: t.load.Unit}}
	for i, name := range t.load.Sharers {
		line := chart.Line{Name: name}
		if name == "" {
			line.Like, line.Dashed = i, true
		}
		for at := smooth; at < len(t.counts); at += smooth {
			line.Points = append(line.Points, chart.Point{X: t.times[at].Sub(t.times[0]).Seconds(), Y: t.between(at-smooth, at)[i] / 1e3})
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

// Deviation is by how many points that which is farthest off differs from its share.
func Deviation(got, shares []float64) (most float64) {
	total := Sum(got)
	for i, v := range got {
		most = max(most, 100*math.Abs(v/total-shares[i]))
	}
	return most
}

// Jain is the index of fairness (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 where all have the same.
func Jain(values []float64) float64 {
	squares := 0.0
	for _, v := range values {
		squares += v * v
	}
	return Sum(values) * Sum(values) / (float64(len(values)) * squares)
}

// Sum is the sum of values.
func Sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

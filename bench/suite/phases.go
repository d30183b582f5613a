package suite

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/chart"
)

const (
	sampleTime = 10 * time.Millisecond
	smooth     = 5  // samples of which a share is told
	settled    = 20 // samples of a phase that its figures leave out: 200 ms
)

// A sharer is a tenant's lambda.
type sharer struct {
	name                string // "" shows it as the one before
	workload, namespace uint32
	method              uint32 // rounds of spin
}

// A phase is what is offered for a time, all in turn, and the weights by which namespaces share.
type phase struct {
	asked   []sharer
	weights map[uint32]uint64
}

func (p *phase) load(duration time.Duration) gen.Load {
	l := gen.Load{Room: 64, Duration: duration}
	for i := range 60 { // a multiple of all numbers of tenants
		who := p.asked[i%len(p.asked)]
		l.Requests = append(l.Requests, gen.Request{Header: api.Header{Workload: who.workload, Method: who.method}, Payload: make([]byte, 4)})
	}
	return l
}

func (p *phase) limit(ctx context.Context, s *stand.Stand) error {
	limits := backend.Limits{Budget: sharesBudget, Quotas: map[uint32]api.Quota{}}
	for number, w := range p.weights {
		limits.Quotas[number] = api.Quota{Weight: &w}
	}
	return s.NIC.Limit(ctx, limits)
}

// A timeline is what sharers were delivered, phase after phase.
type timeline struct {
	sharers []sharer
	phase   int         // samples of each phase
	counts  [][]float64 // after each sampleTime, of each sharer; the first is from before
	times   []time.Time
}

// follow offers phases, each for so many samples, one after the other without a pause. Time begins with the first delivery.
func follow(ctx context.Context, s *stand.Stand, g *gen.Generator, sharers []sharer, samples int, phases []phase) (*timeline, error) {
	if err := phases[0].limit(ctx, s); err != nil {
		return nil, err
	}
	t := &timeline{sharers: sharers, phase: samples}
	duration := time.Duration(len(phases)*samples) * sampleTime
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := g.Run(ctx, phases[0].load(duration))
		return err
	})
	group.Go(func() error { return t.watch(ctx, s, g, phases) })
	return t, group.Wait()
}

// watch samples what is delivered, and begins each phase.
func (t *timeline) watch(ctx context.Context, s *stand.Stand, g *gen.Generator, phases []phase) error {
	tick := time.NewTicker(sampleTime)
	defer tick.Stop()
	for samples := 0; ; samples = len(t.counts) - 1 {
		if samples > 0 && samples%t.phase == 0 {
			at := samples / t.phase
			if at == len(phases) {
				return nil
			}
			if err := errors.Join(phases[at].limit(ctx, s), g.Change(phases[at].load(0))); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := t.sample(g); err != nil {
			return err
		}
	}
}

// sample adds a sample. Until something is delivered, there is one, which it replaces.
func (t *timeline) sample(g *gen.Generator) error {
	now := make([]float64, len(t.sharers))
	for i, s := range t.sharers {
		n, err := g.Workload(s.workload)
		if err != nil {
			return err
		}
		now[i] = float64(n)
	}
	if len(t.counts) == 1 && sum(now) == sum(t.counts[0]) {
		t.times[0] = time.Now()
		return nil
	}
	t.counts, t.times = append(t.counts, now), append(t.times, time.Now())
	return nil
}

// between are the rates from one sample to another.
func (t *timeline) between(from, to int) []float64 {
	rates := make([]float64, len(t.sharers))
	for i := range rates {
		rates[i] = (t.counts[to][i] - t.counts[from][i]) / t.times[to].Sub(t.times[from]).Seconds()
	}
	return rates
}

// rates are those of a phase, once it has settled.
func (t *timeline) rates(phase int) []float64 {
	return t.between(phase*t.phase+settled, (phase+1)*t.phase)
}

// settling says after how many milliseconds of a phase the shares were those wanted, in that moment and from then on together.
func (t *timeline) settling(phase int, shares []float64) float64 {
	begin, end := phase*t.phase, (phase+1)*t.phase
	at := begin + smooth
	for at < end && max(deviation(t.between(at-smooth, at), shares), deviation(t.between(at, end), shares)) > tolerance {
		at++
	}
	return float64(at-begin) * float64(sampleTime.Milliseconds())
}

// chart shows the rates over time.
func (t *timeline) chart(title string) chart.Chart {
	c := chart.Chart{Title: title, X: chart.Axis{Label: "time (s)"}, Y: chart.Axis{Label: "answered (1,000/s)"}}
	for i, s := range t.sharers {
		line := chart.Line{Name: s.name}
		if s.name == "" {
			line.Like, line.Dashed = i, true
		}
		for at := smooth; at < len(t.counts); at += smooth {
			line.Points = append(line.Points, chart.Point{X: t.times[at].Sub(t.times[0]).Seconds(), Y: t.between(at-smooth, at)[i] / 1e3})
		}
		c.Lines = append(c.Lines, line)
	}
	return c
}

func sum(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

package ikernel

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/timeline"
	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/internal/limits"
)

const (
	sharing      = 3 // tenants
	sharesPoints = 5 // that shares may be off
)

// sharePhases are how many tenants are asked, and their weights (NICA, figure 6a).
var sharePhases = []struct {
	tenants int
	weights timeline.Weights
}{{1, equal}, {2, equal}, {3, equal}, {3, weighted}, {2, weighted}}

var equal, weighted = timeline.Weights{1: 1, 2: 1, 3: 1}, timeline.Weights{1: 40, 2: 40, 3: 20}

// shares measures tenants whose caches have shares of a CPU's time. All ask for more than there is, and nearly all GETs are hits.
func (b *bench) shares(ctx context.Context) error {
	fewer := *b
	fewer.Tenants = sharing
	return fewer.withTenants(ctx, func(all sites) error {
		l, err := limits.New()
		if err != nil {
			return err
		}
		defer l.Close()
		t := trace{steps: zipfSteps(5, b.Steps, b.Own, 1.4, 0), warm: b.Warm}
		return all.cached(max(b.Own/2*itemBytes, memoryMin), l, t.steps, func(d *side) error {
			return b.shareRounds(ctx, d, l, t)
		})
	})
}

// shareRounds follows the phases in each round.
func (b *bench) shareRounds(ctx context.Context, d *side, l *limits.Limits, t trace) error {
	if err := d.warm(ctx, t); err != nil {
		return err
	}
	var off, left, settled, jain, alone, all report.Samples
	var last *timeline.Timeline
	for round := range b.Rounds {
		b.Log("memcached: shares, round %d of %d", round+1, b.Rounds)
		f, err := b.followShares(ctx, d, l)
		if err != nil {
			return err
		}
		two := []float64{0.5, 0.5, 0}
		alone, all, jain = append(alone, timeline.Sum(f.Rates(0))), append(all, timeline.Sum(f.Rates(3))), append(jain, timeline.Jain(f.Rates(2)))
		off, left = append(off, timeline.Deviation(f.Rates(3), []float64{0.4, 0.4, 0.2})), append(left, timeline.Deviation(f.Rates(4), two))
		settled, last = append(settled, f.Settling(4, two)), f
	}
	b.results = append(b.results,
		report.Compare("shares.off_40_40_20", "points", report.Lower, sourceRate, off, report.Goal(sharesPoints)),
		report.Compare("shares.off_50_50_when_one_left", "points", report.Lower, sourceRate, left, report.Goal(sharesPoints)),
		report.Compare("shares.settled_when_one_left", "ms", report.Lower, sourceRate, settled, report.Goal(200)),
		report.Compare("shares.jain_of_equal", "", report.Higher, sourceRate, jain, report.Goal(0.99)),
		report.Compare("shares.three_together", "GETs/s", report.Higher, sourceRate, all, map[string]report.Samples{"one alone": alone}),
	)
	return b.Plot("memcached-shares.svg", func(w io.Writer) error { return chart.Draw(w, last.Chart("Caches: weights 1:1:1, then 40:40:20")) })
}

// followShares follows the phases once.
func (b *bench) followShares(ctx context.Context, d *side, l *limits.Limits) (*timeline.Timeline, error) {
	return timeline.Follow(ctx, timeline.Load{
		Sharers: []string{"tenant 1", "tenant 2", "tenant 3"}, Phases: len(sharePhases), Samples: b.Phase,
		Offer: func(ctx context.Context, duration time.Duration) error {
			_, err := d.offer(ctx, gen.Load{Duration: duration, Servers: sharePhases[0].tenants})
			return err
		},
		Begin: func(_ context.Context, i int) error {
			p := &sharePhases[i]
			err := l.Set(timeline.Budget, p.weights.Quotas())
			if i > 0 {
				err = errors.Join(err, d.Change(gen.Load{Port: port, Servers: p.tenants}))
			}
			return err
		},
		Delivered: func() (rates []float64, err error) {
			counts, err := d.Tenants()
			for _, n := range counts {
				rates = append(rates, float64(n))
			}
			return rates, err
		},
	})
}

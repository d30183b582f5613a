package ikernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lambdanic/lambdanic/api"
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

// A contest is of tenants' caches for a budget.
type contest struct {
	side   *side
	limits *limits.Limits
	budget api.Budget
	answer float64 // how much one is
	unit   string  // of a thousand of that in a second, for plots

	fairness timeline.Fairness
	last     *timeline.Timeline
}

// shares measures tenants whose caches share a CPU's time, and then what is sent. All ask for more than there is, and nearly all GETs are hits.
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
			if err := d.warm(ctx, t); err != nil {
				return err
			}
			return b.shareRounds(ctx, d, l)
		})
	})
}

// shareRounds follows both contests in each round.
func (b *bench) shareRounds(ctx context.Context, d *side, l *limits.Limits) error {
	byTime := contest{side: d, limits: l, budget: api.Budget{Time: timeline.Budget}, answer: 1, unit: "answered (1,000/s)"}
	byBytes := contest{side: d, limits: l, budget: api.Budget{Bandwidth: timeline.Bandwidth}, answer: 8e-3 * float64(frameBytes()), unit: "sent (Mbit/s)"}
	for round := range b.Rounds {
		b.Log("memcached: shares, round %d of %d", round+1, b.Rounds)
		for _, c := range []*contest{&byTime, &byBytes} {
			if err := c.follow(ctx, b.Phase); err != nil {
				return err
			}
		}
	}
	b.results = append(b.results, byTime.fairness.Results("shares.", sourceRate, sharesPoints)...)
	b.add(report.Compare("shares.three_together", "GETs/s", report.Higher, sourceRate, byTime.fairness.Together, map[string]report.Samples{"one alone": byTime.fairness.Alone}))
	b.results = append(b.results, byBytes.fairness.Results("shares.bytes_", sourceRate, sharesPoints)...)
	b.add(report.Compare("shares.bytes_together", "kbit/s", report.Higher, sourceRate, byBytes.fairness.Together,
		map[string]report.Samples{"what may be sent": {timeline.Bandwidth / 1e3}}))
	return b.Plot("memcached-shares.svg", func(w io.Writer) error {
		return chart.Draw(w,
			byTime.last.Chart("Caches' time: weights 1:1:1, then 40:40:20"),
			byBytes.last.Chart(fmt.Sprintf("%d Mbit/s: weights 1:1:1, then 40:40:20", int(timeline.Bandwidth/1e6))))
	})
}

// frameBytes is the length of the frame that answers a GET: Ethernet, IPv4, UDP, memcached's header of datagrams, and the item.
func frameBytes() int {
	key, value := gen.Item(0)
	return 14 + 20 + 8 + 8 + len(fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\nEND\r\n", key, len(value), value))
}

// follow follows tenants who come and leave.
func (c *contest) follow(ctx context.Context, samples int) (err error) {
	c.last, err = timeline.Follow(ctx, timeline.Load{
		Unit:    c.unit,
		Sharers: []string{"tenant 1", "tenant 2", "tenant 3"}, Phases: len(timeline.Coming), Samples: samples,
		Offer: func(ctx context.Context, duration time.Duration) error {
			_, err := c.side.offer(ctx, gen.Load{Duration: duration, Servers: timeline.Coming[0].Sharers})
			return err
		},
		Begin: func(_ context.Context, i int) error {
			p := &timeline.Coming[i]
			err := c.limits.Set(c.budget, p.Weights.Quotas())
			if i > 0 {
				err = errors.Join(err, c.side.Change(gen.Load{Port: port, Servers: p.Sharers}))
			}
			return err
		},
		Delivered: func() (rates []float64, err error) {
			counts, err := c.side.Tenants()
			for _, n := range counts {
				rates = append(rates, float64(n)*c.answer)
			}
			return rates, err
		},
	})
	if err == nil {
		c.fairness.Add(c.last)
	}
	return err
}

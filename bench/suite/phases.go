package suite

import (
	"context"
	"errors"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/timeline"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// A sharer is a tenant's lambda.
type sharer struct {
	name                string // "" shows it as the one before
	workload, namespace uint32
	method              uint32 // rounds of spin, or bytes of fill
}

// A phase is what is offered for a time, all in turn, and the weights by which namespaces share.
type phase struct {
	asked   []sharer
	weights timeline.Weights
}

// load has payloads of so many bytes at most.
func (p *phase) load(room int, duration time.Duration) gen.Load {
	l := gen.Load{Room: room, Duration: duration}
	for i := range 60 { // a multiple of all numbers of tenants
		who := p.asked[i%len(p.asked)]
		l.Requests = append(l.Requests, gen.Request{Header: api.Header{Workload: who.workload, Method: who.method}, Payload: make([]byte, 4)})
	}
	return l
}

func (p *phase) limit(ctx context.Context, s *stand.Stand, budget api.Budget) error {
	return s.NIC.Limit(ctx, backend.Limits{Budget: budget, Quotas: p.weights.Quotas()})
}

// A contest is of sharers for a budget.
type contest struct {
	sharers []sharer
	budget  api.Budget
	room    int                      // payload bytes of the longest reply
	counts  func(who sharer) float64 // how much an answer is
	unit    string                   // of a thousand of that in a second, for plots
	phases  []phase
}

// follow offers the phases, each for so many samples.
func (c *contest) follow(ctx context.Context, s *stand.Stand, g *gen.Generator, samples int) (*timeline.Timeline, error) {
	l := timeline.Load{
		Unit: c.unit, Phases: len(c.phases), Samples: samples,
		Offer: func(ctx context.Context, d time.Duration) error {
			_, err := g.Run(ctx, c.phases[0].load(c.room, d))
			return err
		},
		Begin: func(ctx context.Context, i int) error {
			p := c.phases[i]
			if i == 0 {
				return p.limit(ctx, s, c.budget)
			}
			return errors.Join(p.limit(ctx, s, c.budget), g.Change(p.load(c.room, 0)))
		},
		Delivered: func() ([]float64, error) { return c.delivered(g) },
	}
	for _, who := range c.sharers {
		l.Sharers = append(l.Sharers, who.name)
	}
	return timeline.Follow(ctx, l)
}

// delivered is how much of each sharer's answers arrived.
func (c *contest) delivered(g *gen.Generator) (all []float64, err error) {
	for _, who := range c.sharers {
		n, err := g.Workload(who.workload)
		if err != nil {
			return nil, err
		}
		all = append(all, float64(n)*c.counts(who))
	}
	return all, nil
}

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
	method              uint32 // rounds of spin
}

// A phase is what is offered for a time, all in turn, and the weights by which namespaces share.
type phase struct {
	asked   []sharer
	weights timeline.Weights
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
	return s.NIC.Limit(ctx, backend.Limits{Budget: timeline.Budget, Quotas: p.weights.Quotas()})
}

// follow offers phases, each for so many samples.
func follow(ctx context.Context, s *stand.Stand, g *gen.Generator, sharers []sharer, samples int, phases []phase) (*timeline.Timeline, error) {
	l := timeline.Load{
		Phases: len(phases), Samples: samples,
		Offer: func(ctx context.Context, d time.Duration) error {
			_, err := g.Run(ctx, phases[0].load(d))
			return err
		},
		Begin: func(ctx context.Context, i int) error {
			if i == 0 {
				return phases[i].limit(ctx, s)
			}
			return errors.Join(phases[i].limit(ctx, s), g.Change(phases[i].load(0)))
		},
		Delivered: func() ([]float64, error) { return delivered(g, sharers) },
	}
	for _, who := range sharers {
		l.Sharers = append(l.Sharers, who.name)
	}
	return timeline.Follow(ctx, l)
}

// delivered is how many answers of each sharer arrived.
func delivered(g *gen.Generator, sharers []sharer) (all []float64, err error) {
	for _, who := range sharers {
		n, err := g.Workload(who.workload)
		if err != nil {
			return nil, err
		}
		all = append(all, float64(n))
	}
	return all, nil
}

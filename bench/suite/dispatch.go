package suite

import (
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// manyLambdas is how many lambdas are deployed, to compare with one.
const manyLambdas = 1000

// dispatchTenant is the namespace of the first lambda.
const dispatchTenant = 1

// ample is a quota of requests and time that no load exceeds.
var ample = func() backend.Limits {
	requests, nicTime := uint64(1e9), uint64(1e12)
	return backend.Limits{Quotas: map[uint32]api.Quota{dispatchTenant: {Requests: &requests, NICTime: &nicTime}}}
}()

// shared are limits by which one of two namespaces has its share of a budget.
func shared(budget api.Budget) backend.Limits {
	return backend.Limits{Budget: budget, Quotas: map[uint32]api.Quota{dispatchTenant: {}, dispatchTenant + 1: {}}}
}

// Budgets that no load exceeds.
var muchTime, muchBandwidth = shared(api.Budget{Time: 1e10}), shared(api.Budget{Bandwidth: 100e9})

// runDispatch compares the time per packet, all of it on one CPU: generator, NIC program, lambda, counter. The generator's
// share is the same in every figure; it holds as many different frames in each case, so that its caches are equally warm.
//
// Program.Run cannot measure this: it hands the program its own answer as the next packet.
func runDispatch(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	a, err := s.Build(ctx, "web_server")
	if err != nil {
		return nil, err
	}
	first := stand.Deployment(a, measure.Workload, nil)
	first.NamespaceID = dispatchTenant
	if err := s.NIC.Deploy(ctx, first); err != nil {
		return nil, err
	}
	g, err := gen.New(s.Fast, gen.Options{})
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var one, limited, sharing, sending, hot, uniform report.Samples
	for range o.Rounds {
		if one, err = sampleWithin(ctx, s, g, backend.Limits{}, one); err != nil {
			return nil, err
		}
		if limited, err = sampleWithin(ctx, s, g, ample, limited); err != nil {
			return nil, err
		}
		if sharing, err = sampleWithin(ctx, s, g, muchTime, sharing); err != nil {
			return nil, err
		}
		if sending, err = sampleWithin(ctx, s, g, muchBandwidth, sending); err != nil {
			return nil, err
		}
	}
	if err := s.NIC.Limit(ctx, backend.Limits{}); err != nil {
		return nil, err
	}
	o.Log("dispatch: deploying %d lambdas", manyLambdas)
	for id := measure.Workload + 1; id < measure.Workload+manyLambdas; id++ {
		if err := s.NIC.Deploy(ctx, stand.Deployment(a, uint32(id), nil)); err != nil {
			return nil, err
		}
	}
	for round := range o.Rounds {
		o.Log("dispatch: round %d of %d", round+1, o.Rounds)
		if hot, err = sampleCost(ctx, g, dispatchLoad(1), hot); err != nil {
			return nil, err
		}
		if uniform, err = sampleCost(ctx, g, dispatchLoad(manyLambdas), uniform); err != nil {
			return nil, err
		}
	}
	alone := map[string]report.Samples{"one deployed": one}
	return []report.Result{
		report.Compare("within_quota", "ns/packet", report.Lower, measure.SourceOpen, limited, alone),
		report.Compare("within_share", "ns/packet", report.Lower, measure.SourceOpen, sharing, alone),
		report.Compare("within_bandwidth", "ns/packet", report.Lower, measure.SourceOpen, sending, alone),
		report.Compare("hot_of_1000", "ns/packet", report.Lower, measure.SourceOpen, hot, alone),
		report.Compare("uniform_over_1000", "ns/packet", report.Lower, measure.SourceOpen, uniform, alone),
	}, nil
}

// dispatchLoad calls so many lambdas in turn.
func dispatchLoad(lambdas int) gen.Load {
	l := gen.Load{Room: 64}
	for i := range manyLambdas {
		l.Requests = append(l.Requests, gen.Request{
			Header: api.Header{Workload: uint32(measure.Workload + i%lambdas)}, Payload: []byte("/hello"),
		})
	}
	return l
}

// sampleWithin is sampleCost of one lambda, with limits in force.
func sampleWithin(ctx context.Context, s *stand.Stand, g *gen.Generator, l backend.Limits, samples report.Samples) (report.Samples, error) {
	if err := s.NIC.Limit(ctx, l); err != nil {
		return nil, err
	}
	return sampleCost(ctx, g, dispatchLoad(1), samples)
}

func sampleCost(ctx context.Context, g *gen.Generator, l gen.Load, s report.Samples) (report.Samples, error) {
	r, err := g.Run(ctx, l)
	if err != nil {
		return nil, err
	}
	if r.Loss() > gen.MaxLoss {
		return nil, fmt.Errorf("%w: %d of %d packets got a good answer", measure.ErrWrong, r.Delivered, r.Sent)
	}
	return append(s, 1e9/r.Rate()), nil
}

package suite

import (
	"context"
	"errors"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/receiver"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/timeline"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
)

const (
	passingPort    = 7777 // no lambda's
	passingTenants = 10   // to whom the lambdas belong
	passingGoal    = 0.95 // of what an empty program lets pass

	sourcePassing = "open loop from BPF_PROG_TEST_RUN live frames; datagrams counted at the socket behind the NIC"
)

// runPassing measures how many datagrams a second come to a socket past the NIC program, whose tenants have many lambdas and share a
// budget, against those past a program that is empty.
func runPassing(ctx context.Context, s *stand.Stand, a *compiler.Artifact, o measure.Options, lambdas int) (results []report.Result, err error) {
	o.Log("isolation: deploying %d lambdas", lambdas)
	limits := backend.Limits{Budget: api.Budget{Time: timeline.Budget}, Quotas: map[uint32]api.Quota{}}
	for i := range uint32(lambdas) {
		d := stand.Deployment(a, passingWorkload+i, nil)
		d.NamespaceID = 1 + i%passingTenants
		limits.Quotas[d.NamespaceID] = api.Quota{}
		if err := s.NIC.Deploy(ctx, d); err != nil {
			return nil, err
		}
	}
	if err := s.NIC.Limit(ctx, limits); err != nil {
		return nil, err
	}
	r, err := receiver.Open(s.Fast, passingPort)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	g, err := gen.New(s.Fast, gen.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	p := passing{s.Fast, g, r}
	var past, empty, goal report.Samples
	for round := range o.Rounds {
		o.Log("isolation: passing, round %d of %d", round+1, o.Rounds)
		ours, theirs, err := p.round(ctx)
		if err != nil {
			return nil, err
		}
		past, empty, goal = append(past, ours), append(empty, theirs), append(goal, passingGoal*theirs)
	}
	against := map[string]report.Samples{"XDP_PASS": empty, "goal": goal}
	return []report.Result{report.Compare("passing.rate", "1/s", report.Higher, sourcePassing, past, against)}, nil
}

// passing is where datagrams pass.
type passing struct {
	pair *link.Pair
	g    *gen.Generator
	r    *receiver.Receiver
}

// round measures the NIC program, the empty one twice, and the NIC program again: a machine that becomes slower meanwhile does so for both.
func (p *passing) round(ctx context.Context) (past, empty float64, err error) {
	for _, isEmpty := range []bool{false, true, true, false} {
		rate, err := p.sample(ctx, isEmpty)
		if err != nil {
			return 0, 0, err
		}
		if isEmpty {
			empty += rate / 2
		} else {
			past += rate / 2
		}
	}
	return past, empty, nil
}

// sample offers as many datagrams as the generator can, and says how many of them came per second.
func (p *passing) sample(ctx context.Context, isEmpty bool) (rate float64, err error) {
	if isEmpty {
		pass, err := p.pair.PassPeer()
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, pass.Close()) }()
	}
	before, err := p.r.Received()
	if err != nil {
		return 0, err
	}
	result, err := p.g.Run(ctx, gen.Load{Port: passingPort, Requests: []gen.Request{{}}})
	if err != nil {
		return 0, err
	}
	after, err := p.r.Received()
	return float64(after-before) / result.Elapsed.Seconds(), err
}

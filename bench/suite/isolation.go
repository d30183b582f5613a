package suite

import (
	"context"
	"errors"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
)

// The workloads behind measure.Workload, which is that of the tenant who is measured.
const (
	shortWorkload   = measure.Workload + 1
	longWorkload    = measure.Workload + 2
	passingWorkload = measure.Workload + 3
)

// isolationSize says how much is measured.
type isolationSize struct {
	calls   time.Duration // of one sample
	load    time.Duration // of an overload
	lambdas int           // past which datagrams go
}

// isolationBenchmarks are the parts of the suite.
var isolationBenchmarks = []string{"neighbour", "passing", "overload"}

// runIsolation measures what others on the NIC notice of a tenant that asks for far more than its share, and of the NIC itself.
func runIsolation(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	return measureIsolation(ctx, s, o, isolationSize{calls: 400 * time.Millisecond, load: 300 * time.Millisecond, lambdas: manyLambdas})
}

func measureIsolation(ctx context.Context, s *stand.Stand, o measure.Options, size isolationSize) (all []report.Result, err error) {
	a, err := build(ctx, "spin")
	if err != nil {
		return nil, err
	}
	for i, run := range []func() ([]report.Result, error){
		func() ([]report.Result, error) { return runNeighbour(ctx, s, a, o, size.calls) },
		func() ([]report.Result, error) { return runPassing(ctx, s, a, o, size.lambdas) },
		func() ([]report.Result, error) { return runOverload(ctx, s, a, o, size.load) },
	} {
		if o.Benchmark != "" && o.Benchmark != isolationBenchmarks[i] {
			continue
		}
		results, err := run()
		if err != nil {
			return nil, err
		}
		all = append(all, results...)
	}
	return all, nil
}

// twoTenants deploys lambdas of the namespaces 1 and 2, which have equal weights, and gives a generator that asks them. The NIC receives on
// the server's CPU, the generator's end of the pair on CPU host. stop ends the generator and these threads.
func twoTenants(ctx context.Context, s *stand.Stand, a *compiler.Artifact, sharers []sharer, host int) (g *gen.Generator, stop func() error, err error) {
	for _, who := range sharers {
		d := stand.Deployment(a, who.workload, nil)
		d.NamespaceID = who.namespace
		if err := s.NIC.Deploy(ctx, d); err != nil {
			return nil, nil, err
		}
	}
	equal := phase{weights: map[uint32]uint64{1: 1, 2: 1}}
	if err := equal.limit(ctx, s, timeBudget); err != nil {
		return nil, nil, err
	}
	g, err = gen.New(s.Fast, gen.Options{ByWorkload: true})
	if err != nil {
		return nil, nil, err
	}
	threads, err := measure.ReceiveOn(s.Fast, host, measure.ServerCPU())
	if err != nil {
		return nil, nil, errors.Join(err, g.Close())
	}
	return g, func() error { return errors.Join(threads(), g.Close()) }, nil
}

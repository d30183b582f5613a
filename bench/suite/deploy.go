package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/compiler"
)

const (
	sourceDeploy = "compiler and NIC alone, without API, manager and store: from source to the first answered request"
	sourceSwap   = "NIC alone, without API, manager and store: from loading a built revision to its first answer"
)

// runDeploy times the compiler and the NIC from a web server's source on, first alone, then in a whole daemon. Nothing is cached;
// every round removes what it deployed.
func runDeploy(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	var times report.Samples
	for round := range o.Rounds {
		o.Log("deploy: round %d of %d", round+1, o.Rounds)
		start := time.Now()
		a, err := s.Build(ctx, "web_server")
		if err != nil {
			return nil, err
		}
		if err := serve(ctx, s, a, 1); err != nil {
			return nil, err
		}
		times = append(times, measure.Milliseconds(start))
		if err := s.NIC.Remove(ctx, measure.Workload); err != nil {
			return nil, err
		}
	}
	whole, err := deployByAPI(ctx, o)
	return []report.Result{report.Compare("compile and load", "ms", report.Lower, sourceDeploy, times, nil), whole}, err
}

// runSwap times how soon the NIC answers with a further revision of a built web server, alone and in a whole daemon.
func runSwap(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
	a, err := s.Build(ctx, "web_server")
	if err != nil {
		return nil, err
	}
	if err := serve(ctx, s, a, 1); err != nil {
		return nil, err
	}
	var times report.Samples
	for round := range o.Rounds {
		o.Log("swap: round %d of %d", round+1, o.Rounds)
		start := time.Now()
		if err := serve(ctx, s, a, uint32(2+round)); err != nil {
			return nil, err
		}
		times = append(times, measure.Milliseconds(start))
	}
	whole, err := swapByAPI(ctx, o)
	return []report.Result{report.Compare("load and swap", "ms", report.Lower, sourceSwap, times, nil), whole}, err
}

// serve deploys a revision and returns when that revision answered.
func serve(ctx context.Context, s *stand.Stand, a *compiler.Artifact, revision uint32) error {
	d := stand.Deployment(a, measure.Workload, nil)
	d.Revision = revision
	if err := s.NIC.Deploy(ctx, d); err != nil {
		return err
	}
	conn, err := lambdanic.DialConn(s.NIC.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	r, err := conn.Call(ctx, lambdanic.Request{Workload: measure.Workload, Body: measure.WebServer().Calls[0].Body})
	if err != nil {
		return err
	}
	if r.Revision != revision {
		return fmt.Errorf("%w: revision %d answered after revision %d was deployed", measure.ErrWrong, r.Revision, revision)
	}
	return nil
}

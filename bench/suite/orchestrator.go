package suite

import (
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/sim/heartbeats"
)

// largestFleet is that of E3's Figure 11 (Liu et al., ATC 2019, section 5.6), with the four SmartNICs a server of its Table 4.
var largestFleet = heartbeats.Fleet{Servers: 50_000, NICs: 4, Overloaded: 0.01, Silent: 0.001, Intervals: 20, Seed: 1}

// orchestratorFigures are of a fleet with some number of lambdas a NIC.
type orchestratorFigures struct {
	rate, all, p50, p99 report.Samples
}

func (f *orchestratorFigures) add(o *heartbeats.Outcome) {
	f.rate = append(f.rate, o.Rate())
	f.all = append(f.all, o.Burst().Seconds()*1e3)
	f.p50 = append(f.p50, float64(o.Decision.ValueAtQuantile(50)))
	f.p99 = append(f.p99, float64(o.Decision.ValueAtQuantile(99)))
}

// runOrchestrator makes a suite that compares numbers of lambdas with the first of them. It needs no NIC.
func runOrchestrator(fleet heartbeats.Fleet, lambdas ...int) func(context.Context, *stand.Stand, measure.Options) ([]report.Result, error) {
	return func(ctx context.Context, _ *stand.Stand, o measure.Options) (rs []report.Result, err error) {
		figures := make([]orchestratorFigures, len(lambdas))
		for round := range o.Rounds {
			for i, n := range lambdas {
				o.Log("orchestrator: round %d of %d, %d lambdas a NIC", round+1, o.Rounds, n)
				f := fleet
				f.Lambdas = n
				outcome, err := f.Run(ctx)
				if err != nil {
					return nil, err
				}
				figures[i].add(outcome)
			}
		}
		source := fmt.Sprintf("heartbeats of %d servers with %d NICs each, on one core", fleet.Servers, fleet.NICs)
		few := fmt.Sprintf("%d", lambdas[0])
		for i, n := range lambdas {
			compare := func(name, unit string, better report.Better, of func(*orchestratorFigures) report.Samples) {
				var against map[string]report.Samples
				if i > 0 {
					against = map[string]report.Samples{few: of(&figures[0])}
				}
				rs = append(rs, report.Compare(fmt.Sprintf("lambdas_%d.%s", n, name), unit, better, source, of(&figures[i]), against))
			}
			compare("taken_in", "1/s", report.Higher, func(f *orchestratorFigures) report.Samples { return f.rate })
			compare("all_at_once", "ms", report.Lower, func(f *orchestratorFigures) report.Samples { return f.all })
			compare("decision_p50", "ns", report.Lower, func(f *orchestratorFigures) report.Samples { return f.p50 })
			compare("decision_p99", "ns", report.Lower, func(f *orchestratorFigures) report.Samples { return f.p99 })
		}
		return rs, nil
	}
}

package suite

import (
	"context"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// placements are policies that runPlacement measures, and on how many servers: those of E3's Table 6, and far more for HCM.
var placements = []struct {
	policy  cluster.Policy
	servers []int
}{
	{cluster.HCM, []int{100, 200, 400, 600, 800, 1000, 10_000, 100_000}},
	{cluster.Spread, []int{100, 200, 400, 600, 800, 1000}},
	{cluster.Annealing, []int{100, 200, 400, 600, 800, 1000}},
}

func placementBenchmarks() (names []string) {
	for _, p := range placements {
		names = append(names, string(p.policy))
	}
	return names
}

// placedMicroservices are as many as in Table 6 (Liu et al., E3, ATC 2019, section 5.6).
const placedMicroservices = 10_000

// runPlacement takes the time to place applications on clusters. The paper's figures are of another machine and program.
func runPlacement(ctx context.Context, _ *stand.Stand, o measure.Options) (results []report.Result, err error) {
	for _, p := range placements {
		if o.Benchmark != "" && o.Benchmark != string(p.policy) {
			continue
		}
		for _, servers := range p.servers {
			o.Log("placement: %s on %d servers", p.policy, servers)
			var times report.Samples
			for range o.Rounds {
				s := cluster.Scale{Servers: servers, Microservices: placedMicroservices, How: cluster.How{Policy: p.policy, Seed: 1}}
				placed, err := cluster.Default().Place(ctx, s, func(int, int) {})
				if err != nil {
					return nil, fmt.Errorf("%s on %d servers: %w", p.policy, servers, err)
				}
				times = append(times, 1000*placed.PerMicroservice())
			}
			var others map[string]report.Samples
			if ms, ok := cluster.Table6(servers, p.policy); ok {
				others = map[string]report.Samples{"E3's Table 6": slices.Repeat(report.Samples{1000 * ms}, o.Rounds)}
			}
			name := fmt.Sprintf("%s_%d_servers", p.policy, servers)
			results = append(results, report.Compare(name, "µs/microservice", report.Lower, "time on one core to place applications, one after the other", times, others))
		}
	}
	return results, nil
}

package suite

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/timeline"
)

// HCM has a figure for each cluster, beside the paper's where it has one.
func TestPlacementByHCM(t *testing.T) {
	results, err := runPlacement(t.Context(), nil, measure.Options{Rounds: 1, Benchmark: "hcm", Progress: t.Output()})
	if err != nil || len(results) != len(placements[0].servers) {
		t.Fatalf("%+v, %v", results, err)
	}
	for i := range results {
		if r := &results[i]; r.Value <= 0 || (r.Against != nil) != (placements[0].servers[i] <= 1000) {
			t.Errorf("%+v", r)
		}
	}
}

// The suites run to their end; what they measured decides nothing.
func TestSuitesRun(t *testing.T) {
	if out, err := exec.Command("make", "-C", "../../client/node").CombinedOutput(); err != nil {
		t.Fatalf("build the Node.js client: %v\n%s", err, out)
	}
	for name, results := range map[string]int{"echo": 1, "swap": 2, "gateway": 2, "deploy": 2, "clients": 27, "rdma": 5} {
		s, err := measure.Run(t.Context(), All(), name, measuretest.Options(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Results) < results || s.Results[results-1].Value <= 0 || s.Suite != name {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

// So does that of shares, whose figures are of all phases.
func TestSharesRun(t *testing.T) {
	shares := measure.Suite{Name: "shares", Run: func(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
		return measureShares(ctx, s, o, 2*timeline.Settled)
	}}
	s, err := measure.Run(t.Context(), []measure.Suite{shares}, "shares", measuretest.Options(t))
	if err != nil || len(s.Results) != 13 || s.Results[7].Value <= 0 || s.Results[12].Value <= 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// And that of isolation.
func TestIsolationRuns(t *testing.T) {
	isolation := measure.Suite{Name: "isolation", Run: func(ctx context.Context, s *stand.Stand, o measure.Options) ([]report.Result, error) {
		return measureIsolation(ctx, s, o, isolationSize{calls: 20 * time.Millisecond, load: 20 * time.Millisecond, lambdas: 2 * passingTenants})
	}}
	s, err := measure.Run(t.Context(), []measure.Suite{isolation}, "isolation", measuretest.Options(t))
	if err != nil || len(s.Results) != 12 {
		t.Fatalf("got %+v, %v", s, err)
	}
	for _, r := range s.Results {
		if r.Value <= 0 && r.Name != "overload.bound" { // on a busy machine
			t.Errorf("got %+v", r)
		}
	}
}

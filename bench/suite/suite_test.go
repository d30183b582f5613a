package suite

import (
	"os/exec"
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
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

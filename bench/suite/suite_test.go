package suite

import (
	"context"
	"math"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
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
		return measureShares(ctx, s, o, 2*settled)
	}}
	s, err := measure.Run(t.Context(), []measure.Suite{shares}, "shares", measuretest.Options(t))
	if err != nil || len(s.Results) != 8 || s.Results[7].Value <= 0 {
		t.Errorf("got %+v, %v", s, err)
	}
}

// Fairness is told by what is known of it.
func TestSharesTold(t *testing.T) {
	if got := deviation([]float64{500, 300, 200}, []float64{0.4, 0.4, 0.2}); math.Abs(got-10) > 1e-9 {
		t.Errorf("50:30:20 is %f points off 40:40:20", got)
	}
	for want, values := range map[float64][]float64{1: {3, 3, 3}, 0.5: {1, 0}, 0.9: {1, 2}} {
		if got := jain(values); math.Abs(got-want) > 1e-9 {
			t.Errorf("the index of %v is %f, want %f", values, got, want)
		}
	}
	line := timeline{sharers: make([]sharer, 2), phase: 40}
	counts := []float64{0, 0}
	for i := range 41 {
		line.counts, line.times = append(line.counts, slices.Clone(counts)), append(line.times, time.Unix(0, 0).Add(time.Duration(i)*sampleTime))
		counts[0] += 10
		if i >= 12 { // from then on, both get the same
			counts[1] += 10
		}
	}
	equal := []float64{0.5, 0.5}
	if got := line.settling(0, equal); got != 170 {
		t.Errorf("settled after %f ms, want 120 and a window of 50", got)
	}
	if got := line.rates(0); got[0] != 1000 || got[1] != 1000 {
		t.Errorf("the rates are %v", got)
	}
}

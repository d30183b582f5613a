package ikernel

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/link/linktest"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/timeline"
)

// The suite runs to its end, and draws; what it measured decides nothing.
func TestSuiteRuns(t *testing.T) {
	p := linktest.New(t)
	size := Size{Threads: []int{1}, Hot: 1 << 8, Keys: 1 << 17, Steps: 1 << 18, Warm: 100_000, Tenants: 2, Own: 1 << 15, Run: 20 * time.Millisecond, Phase: 2 * timeline.Settled}
	o := measure.Options{Rounds: 1, Plots: t.TempDir(), Progress: t.Output()}
	results, err := Run(t.Context(), p, o, size)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Value < 0 || r.Value == 0 && r.Unit != "points" { // shares may be exact
			t.Errorf("%+v", r)
		}
	}
	for _, plot := range []string{"memcached-hits.svg", "memcached-zipf.svg", "memcached-latency.svg", "memcached-tenants.svg", "memcached-shares.svg"} {
		if _, err := os.Stat(filepath.Join(o.Plots, plot)); err != nil {
			t.Error(err)
		}
	}
}

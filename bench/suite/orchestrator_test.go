package suite

import (
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure"
)

// The suite runs to its end with a small fleet; what it measured decides nothing.
func TestOrchestrator(t *testing.T) {
	f := largestFleet
	f.Servers = 200
	rs, err := runOrchestrator(f, 1, 10)(t.Context(), nil, measure.Options{Rounds: 2, Progress: t.Output()})
	if err != nil || len(rs) != 8 || rs[4].Name != "lambdas_10.taken_in" || rs[4].Value <= 0 || rs[4].Against["1"] <= 0 {
		t.Errorf("%v: %+v", err, rs)
	}
}

package lab

import (
	"context"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
)

// The figures are there; what they are is for link's own test, and for nobody.
func TestFigure9Runs(t *testing.T) {
	rs, err := figure9(context.Background(), nil, measuretest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		t.Logf("%s %g %s %v", r.Name, r.Value, r.Unit, r.Against)
		if r.Value <= 0 || !strings.HasPrefix(r.Name, "fig9.") || len(r.Against) == 0 {
			t.Errorf("got %+v", r)
		}
	}
	if len(rs) != 4+len(fusedRequests) {
		t.Errorf("%d results", len(rs))
	}
}

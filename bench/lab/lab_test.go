package lab

import (
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
)

// The suites run to their end; what they measured decides nothing.
func TestSuitesRun(t *testing.T) {
	for _, name := range []string{"replies", "compiler/grey", "queue"} {
		s, err := measure.Run(t.Context(), All(), name, measuretest.Options(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(s.Results) == 0 || s.Results[0].Value <= 0 || s.Suite != name {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

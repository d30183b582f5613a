package suite

import (
	"os/exec"
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
)

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

package coap

import (
	"os/exec"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/bench/link/linktest"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
)

// The suite runs to its end; what it measured decides nothing.
func TestSuiteRuns(t *testing.T) {
	if out, err := exec.Command("make", "-C", "../../ikernels/coapjwt/testdata/node").CombinedOutput(); err != nil {
		t.Fatalf("install the server: %v\n%s", err, out)
	}
	p, o := linktest.New(t), measuretest.Options(t)
	results, err := Run(t.Context(), p, o, Size{Forged: []int{0, 1}, Run: 100 * time.Millisecond})
	if err != nil || len(results) != 4 || results[0].Value <= 0 {
		t.Fatalf("%+v, %v", results, err)
	}
}

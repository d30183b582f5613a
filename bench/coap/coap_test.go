package coap

import (
	"os"
	"os/exec"
	"path/filepath"
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
	o.Plots = t.TempDir()
	results, err := Run(t.Context(), p, o, Size{Forged: []int{0, 1}, Run: 100 * time.Millisecond})
	if err != nil || len(results) != 4 || results[0].Value <= 0 {
		t.Fatalf("%+v, %v", results, err)
	}
	if _, err := os.Stat(filepath.Join(o.Plots, "coap-jwt.svg")); err != nil {
		t.Error(err)
	}
}

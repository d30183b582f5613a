package coap

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/bench/link/linktest"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
	"github.com/lambdanic/lambdanic/bench/timeline"
)

// The comparison runs to its end; what it measured decides nothing.
func TestForgedRuns(t *testing.T) {
	if out, err := exec.Command("make", "-C", "../../ikernels/coapjwt/testdata/node").CombinedOutput(); err != nil {
		t.Fatalf("install the server: %v\n%s", err, out)
	}
	p, o := linktest.New(t), measuretest.Options(t)
	o.Plots, o.Benchmark = t.TempDir(), "forged"
	results, err := Run(t.Context(), p, o, Size{Forged: []int{0, 1}, Run: 100 * time.Millisecond})
	if err != nil || len(results) != 4 || results[0].Value <= 0 {
		t.Fatalf("%+v, %v", results, err)
	}
	if _, err := os.Stat(filepath.Join(o.Plots, "coap-jwt.svg")); err != nil {
		t.Error(err)
	}
}

// So does that of shares, which needs no server. The guards check what is offered: it ends with an error where one takes it for anything but forged.
func TestSharesRun(t *testing.T) {
	p := linktest.New(t)
	o := measure.Options{Rounds: 1, Benchmark: "shares", Plots: t.TempDir(), Progress: t.Output()}
	results, err := Run(t.Context(), p, o, Size{Cycles: 1, Phase: 2 * timeline.Settled})
	if err != nil || len(results) != 5 {
		t.Fatalf("%+v, %v", results, err)
	}
	for _, r := range results {
		if r.Value < 0 || r.Value == 0 && r.Unit != "points" { // shares may be exact
			t.Errorf("%+v", r)
		}
	}
	if _, err := os.Stat(filepath.Join(o.Plots, "coap-jwt-shares.svg")); err != nil {
		t.Error(err)
	}
}

func TestTokensAreOfTheirLength(t *testing.T) {
	for length, c := range map[int]jwt.MapClaims{125: claims, 175: longClaims} {
		if got, err := token(newKey(), c); err != nil || len(got) != length {
			t.Errorf("%q has %d bytes (%v), want %d", got, len(got), err, length)
		}
	}
}

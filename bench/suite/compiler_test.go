package suite

import (
	"context"
	"testing"

	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler/corpus/rig"
	"github.com/lambdanic/lambdanic/compiler/corpus/rig/rigtest"
)

// Each figure of time is there, and beside it what the machine itself takes.
func TestCompilerTimes(t *testing.T) {
	r := rigtest.Open(t, "suite")
	found := make(map[string]report.Result)
	for _, part := range []func(context.Context, *rig.Rig, *stand.Stand, Options) ([]report.Result, error){buildTimes, multiplyAdd} {
		results, err := part(t.Context(), r, nil, options(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, result := range results {
			found[result.Name] = result
		}
	}
	for _, name := range []string{"web_server.source_to_artifact", "machine.integer_loop", "multiply_add_float", "multiply_add_double"} {
		if found[name].Value <= 0 {
			t.Errorf("%s: got %+v", name, found[name])
		}
	}
	for _, name := range []string{"multiply_add_float", "multiply_add_double"} {
		if found[name].Against["native"] <= 0 {
			t.Errorf("%s has no native chain beside it: %+v", name, found[name])
		}
	}
	t.Log(found)
}

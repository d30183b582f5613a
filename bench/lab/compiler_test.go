package lab

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/lambdanic/lambdanic/bench/costs"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/measure/measuretest"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/test/rig"
)

// Each figure of time is there, and beside it what the machine itself takes.
func TestCompilerTimes(t *testing.T) {
	r := rig.ForTest(t, "suite")
	found := make(map[string]report.Result)
	for _, part := range []func(context.Context, *rig.Rig, measure.Options) ([]report.Result, error){buildTimes, multiplyAdd} {
		results, err := part(t.Context(), r, measuretest.Options(t))
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
}

// Each operation is measured, computes the same in both places, and stands in the guide to the language.
func TestOperationCosts(t *testing.T) {
	results, err := operationCosts(t.Context(), rig.ForTest(t, "costs"), measuretest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	operations := append([]costs.Operation{costs.Empty, costs.Walked}, costs.Operations...)
	if len(results) != len(operations) {
		t.Fatalf("%d results of %d operations", len(results), len(operations))
	}
	for i, op := range operations {
		if results[i].Name != "cost."+op.Name {
			t.Errorf("result %d is %s, want that of %s", i, results[i].Name, op.Name)
		}
		if !bytes.Contains(guide, []byte("| "+op.Title+" |")) {
			t.Errorf("docs/language.md has no row %q", op.Title)
		}
	}
}

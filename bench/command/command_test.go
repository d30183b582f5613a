package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

func execute(asJSON bool, args ...string) (string, error) {
	refuse := func(context.Context, *stand.Stand, measure.Options) ([]report.Result, error) {
		return nil, errors.New("a suite runs")
	}
	suites := []measure.Suite{{Name: "one", About: "the first", Run: refuse}, {Name: "two", About: "the second", Benchmarks: []string{"a", "b"}, Run: refuse}}
	cmd := New(suites, &asJSON, new(measure.Options))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestList(t *testing.T) {
	out, err := execute(false, "--list")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); err != nil || len(lines) != 3 || strings.Join(strings.Fields(lines[2]), " ") != "two the second a, b" {
		t.Errorf("%q (%v)", out, err)
	}
	out, err = execute(true, "--list")
	var all []description
	if err := errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil || len(all) != 2 || all[1].Name != "two" || len(all[1].Benchmarks) != 2 {
		t.Errorf("%q: %+v (%v)", out, all, err)
	}
}

// A shell completes the names of suites and of their benchmarks.
func TestCompletion(t *testing.T) {
	out, err := execute(false, cobra.ShellCompNoDescRequestCmd, "")
	if err != nil || !strings.HasPrefix(out, "one\ntwo\ntwo/a\ntwo/b\n") {
		t.Errorf("%q (%v)", out, err)
	}
}

// Invalid arguments are refused before any suite runs.
func TestRefused(t *testing.T) {
	for want, args := range map[string][]string{
		"--rounds 0":            {"one", "--rounds", "0"},
		"--rounds -1":           {"--rounds", "-1"},
		`no such suite "three"`: {"one", "three"},
		`no such suite "one/a"`: {"one/a"},
	} {
		if _, err := execute(false, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error with %q", args, err, want)
		}
	}
}

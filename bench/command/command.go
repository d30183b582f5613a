// Package command is the command line of benchmarks: `lambdanic bench` has the suites of a user, lambdanic-bench all of them.
package command

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/ui"
)

// New makes a command that runs suites. Its flags fill in o; the caller may set the rest. The command looks at asJSON
// when it runs: where it is true, the command prints JSON.
func New(suites []measure.Suite, asJSON *bool, o *measure.Options) *cobra.Command {
	var list, verbose bool
	cmd := &cobra.Command{
		Use:   "bench [SUITE[/BENCHMARK]...]",
		Short: "Measure the NIC against processes on this machine",

		ValidArgsFunction: cobra.FixedCompletions(measure.Names(suites), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			switch {
			case list && *asJSON:
				return ui.JSON(cmd.OutOrStdout(), describe(suites))
			case list:
				return listSuites(cmd, suites)
			case o.Rounds < 1:
				return fmt.Errorf("--rounds %d: at least one round has to run", o.Rounds)
			}
			if err := measure.Check(suites, names); err != nil {
				return err
			}
			if len(names) == 0 {
				for _, s := range suites {
					names = append(names, s.Name)
				}
			}
			if o.LambdaHost, err = process.HostBinary(); err != nil { // the binary that the daemon would use
				return err
			}
			if o.Plots != "" {
				if err := os.MkdirAll(o.Plots, 0o755); err != nil {
					return fmt.Errorf("make the directory of --plots: %w", err)
				}
			}
			if verbose || ui.Terminal(cmd.ErrOrStderr()) {
				o.Progress = cmd.ErrOrStderr()
			}
			return run(cmd, suites, names, *asJSON, *o)
		},
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "say what is being done and what fails, also where errors do not go to a terminal")
	cmd.Flags().BoolVar(&list, "list", false, "name the suites")
	cmd.Flags().StringVar(&o.Lambdas, "lambdas", "lambdas", "directory of the bundled lambdas")
	cmd.Flags().StringVar(&o.Plots, "plots", "", "directory in which suites that have plots draw them, as SVG")
	cmd.Flags().IntVar(&o.Rounds, "rounds", 5, "alternating runs, of which medians are taken")
	return cmd
}

func run(cmd *cobra.Command, suites []measure.Suite, names []string, asJSON bool, o measure.Options) error {
	var all []report.Suite
	for _, name := range names {
		s, err := measure.Run(cmd.Context(), suites, name, o)
		if err != nil {
			return fmt.Errorf("bench %s: %w", name, err)
		}
		if !asJSON {
			if err := s.WriteTable(cmd.OutOrStdout()); err != nil {
				return err
			}
		}
		all = append(all, s)
	}
	switch {
	case !asJSON:
		return nil
	case len(all) == 1:
		return all[0].WriteJSON(cmd.OutOrStdout())
	}
	return ui.JSON(cmd.OutOrStdout(), all)
}

// A description is a suite in the output of --list.
type description struct {
	Name       string   `json:"name"`
	About      string   `json:"about"`
	Benchmarks []string `json:"benchmarks,omitempty"`
}

func describe(suites []measure.Suite) (all []description) {
	for _, s := range suites {
		all = append(all, description{s.Name, s.About, s.Benchmarks})
	}
	return all
}

func listSuites(cmd *cobra.Command, suites []measure.Suite) error {
	head, divided := []string{"SUITE", "MEASURES"}, false
	for _, s := range suites {
		divided = divided || len(s.Benchmarks) > 0
	}
	if divided {
		head = append(head, "BENCHMARKS")
	}
	var rows [][]string
	for _, s := range suites {
		rows = append(rows, []string{s.Name, s.About, strings.Join(s.Benchmarks, ", ")}[:len(head)])
	}
	return ui.Table(cmd.OutOrStdout(), head, rows)
}

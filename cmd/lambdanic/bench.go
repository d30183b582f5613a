package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/bench/suite"
	"github.com/lambdanic/lambdanic/cmd/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/internal/daemon"
)

func benchCommand(o *options) *cobra.Command {
	var list, verbose bool
	var lambdas string
	var rounds int
	var seed uint64
	cmd := &cobra.Command{
		Use:   "bench [SUITE[/PART]...]",
		Short: "Measure the NIC against processes on this machine",
		Long: "Measure the NIC against processes on this machine, side by side and alternately. Without a name, every suite runs.\n\n" +
			"Where --list names parts of a suite, SUITE/PART measures that part alone.",
		Example: "  lambdanic bench --list\n  sudo lambdanic bench web_server --json\n  sudo lambdanic bench compiler/build compiler/float",
		RunE: func(cmd *cobra.Command, names []string) error {
			if list {
				return listSuites(cmd, o.json)
			}
			if len(names) == 0 {
				for _, s := range suite.All() {
					names = append(names, s.Name)
				}
			}
			config, err := standConfig(lambdas)
			if err != nil {
				return err
			}
			options := suite.Options{Config: config, Rounds: rounds, Seed: seed}
			if verbose || ui.Terminal(cmd.ErrOrStderr()) {
				options.Progress = cmd.ErrOrStderr()
			}
			var all []report.Suite
			for _, name := range names {
				s, err := suite.Run(cmd.Context(), name, options)
				if err != nil {
					return fmt.Errorf("bench %s: %w", name, err)
				}
				if !o.json {
					if err := s.WriteTable(cmd.OutOrStdout()); err != nil {
						return err
					}
				}
				all = append(all, s)
			}
			switch {
			case !o.json:
				return nil
			case len(all) == 1:
				return all[0].WriteJSON(cmd.OutOrStdout())
			}
			return ui.JSON(cmd.OutOrStdout(), all)
		},
	}
	cmd.Flags().BoolVar(&verbose, "verbose", false, "say what is being done and what fails, also where errors do not go to a terminal")
	cmd.Flags().BoolVar(&list, "list", false, "name the suites")
	cmd.Flags().StringVar(&lambdas, "lambdas", "lambdas", "directory of the bundled lambdas")
	cmd.Flags().IntVar(&rounds, "rounds", 0, "alternating runs, of which medians are taken (5)")
	cmd.Flags().Uint64Var(&seed, "seed", 0, "the first random program of compiler/random, which takes 200 in each round")
	return cmd
}

// A suiteName is what --list says of a suite.
type suiteName struct {
	Name  string   `json:"name"`
	About string   `json:"about"`
	Parts []string `json:"parts,omitempty"`
}

func listSuites(cmd *cobra.Command, asJSON bool) error {
	var rows [][]string
	names := []suiteName{}
	for _, s := range suite.All() {
		rows = append(rows, []string{s.Name, s.About, strings.Join(s.Parts, ", ")})
		names = append(names, suiteName{s.Name, s.About, s.Parts})
	}
	if asJSON {
		return ui.JSON(cmd.OutOrStdout(), names)
	}
	return ui.Table(cmd.OutOrStdout(), []string{"SUITE", "MEASURES", "PARTS"}, rows)
}

// standConfig says what to measure with: the lambda-host that the daemon would take.
func standConfig(lambdas string) (stand.Config, error) {
	host, err := daemon.HostBinary()
	return stand.Config{LambdaHost: host, Lambdas: lambdas}, err
}

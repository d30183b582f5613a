package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/demo"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func demoCommand(o *options) *cobra.Command {
	var lambdas, out string
	var rounds int
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run the three bundled lambdas on the NIC and as processes, and compare them",
		Long: "Run the three bundled lambdas on a NIC of its own and as processes, check every answer, measure both sides, print a\n" +
			"table, write demo.json and demo.svg, and clean up.",
		Example: "  sudo lambdanic demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			host, err := process.HostBinary() // the binary that the daemon would use
			if err != nil {
				return err
			}
			options := demo.Options{Config: stand.Config{LambdaHost: host, Lambdas: lambdas}, Rounds: rounds, Out: out, Table: cmd.OutOrStdout()}
			if o.json {
				options.Table = cmd.ErrOrStderr()
			}
			if ui.Terminal(cmd.ErrOrStderr()) {
				options.Progress = cmd.ErrOrStderr()
			}
			if err := demo.Run(cmd.Context(), options); err != nil || !o.json {
				return err
			}
			result, err := os.ReadFile(filepath.Join(out, "demo.json"))
			if err != nil {
				return fmt.Errorf("read the result: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(result)
			return err
		},
	}
	cmd.Flags().StringVar(&lambdas, "lambdas", "lambdas", "directory of the bundled lambdas")
	cmd.Flags().StringVar(&out, "out", "build", "directory for demo.json and demo.svg")
	cmd.Flags().IntVar(&rounds, "rounds", 0, "alternating runs, of which medians are taken (5)")
	return cmd
}

// Command lambdanic-bench runs every benchmark suite: those of `lambdanic bench`, and those that need the test rigs of this source.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/bench/command"
	"github.com/lambdanic/lambdanic/bench/lab"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/suite"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s %v\n", ui.Colour(os.Stderr, ui.Red, "lambdanic-bench:"), err)
		stop()
		os.Exit(1)
	}
}

func root() *cobra.Command {
	var asJSON bool
	var o measure.Options
	cmd := command.New(slices.Concat(suite.All(), lab.All()), &asJSON, &o)
	cmd.Use = "lambdanic-bench [SUITE[/BENCHMARK]...]"
	cmd.Short = "Run the benchmark suites of users and of contributors"
	cmd.Long = "Run the benchmark suites: those of `lambdanic bench`, and those that look into λ-NIC. Without a name, every suite runs.\n\n" +
		"Where --list names benchmarks of a suite, SUITE/BENCHMARK runs that benchmark alone."
	cmd.Example = "  build/lambdanic-bench --list\n  sudo build/lambdanic-bench compiler/build compiler/float --json\n" +
		"  sudo build/lambdanic-bench compiler/random --seed 1000 --rounds 5"
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.Flags().BoolVar(&asJSON, "json", false, "print results as JSON")
	cmd.Flags().Uint64Var(&o.Seed, "seed", 0, "the first random program of compiler/random, which takes 200 in each round")
	return cmd
}

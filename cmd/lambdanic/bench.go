package main

import (
	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/bench/command"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/suite"
)

func benchCommand(o *options) *cobra.Command {
	cmd := command.New(suite.All(), &o.json, new(measure.Options))
	cmd.Long = "Measure the NIC against processes on this machine, side by side and alternately. Without a name, every suite runs.\n\n" +
		"In the source of λ-NIC, `make bench` runs these and those of its contributors."
	cmd.Example = "  lambdanic bench --list\n  sudo lambdanic bench web_server --json\n  sudo lambdanic bench deploy swap --rounds 9\n  sudo lambdanic bench isolation/neighbour --rounds 11"
	return cmd
}

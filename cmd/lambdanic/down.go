package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/daemon"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func downCommand(o *options) *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take an instance down: its daemon, its NIC and its processes",
		Long: "Take an instance down: its daemon, its NIC and its processes. It works without a daemon too.\n" +
			"What is deployed stays in the store, and the next up brings it back, unless --purge removes that as well.",
		Example: "  lambdanic down\n  lambdanic down --name test --purge",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := o.paths()
			if err != nil {
				return err
			}
			there := exists(p)
			end := ui.Progress(cmd.ErrOrStderr(), "taking instance "+p.Instance+" down")
			err = daemon.Down(cmd.Context(), p, purge)
			end()
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), map[string]any{"instance": p.Instance, "existed": there, "purged": purge && there})
			}
			text := "instance %s is down\n"
			if !there {
				text = "there is no instance %s\n"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), text, p.Instance)
			return err
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "remove the store too: nothing of the instance remains")
	nameInstance(cmd, o)
	return cmd
}

// exists says whether an instance has files.
func exists(p daemon.Paths) bool {
	for _, dir := range []string{p.Run, p.Data} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}

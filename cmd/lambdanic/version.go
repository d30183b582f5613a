package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/ui"
)

func versionCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  lambdanic version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), map[string]string{"version": version(), "commit": commit, "go": runtime.Version(), "arch": runtime.GOARCH})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version())
			return err
		},
	}
}

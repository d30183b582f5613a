package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/cmd/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/internal/daemon"
)

func buildCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "build [DIR]",
		Short:   "Compile a lambda and print its image",
		Long:    "Compile a lambda, the one in this directory by default, and print its image, which deploy takes. No daemon is needed.",
		Example: "  lambdanic build lambdas/web_server",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := o.paths()
			if err != nil {
				return err
			}
			end := ui.Progress(cmd.ErrOrStderr(), "compiling")
			a, err := daemon.Build(cmd.Context(), p, dirArg(args))
			end()
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), a)
			}
			fmt.Fprint(cmd.ErrOrStderr(), a.Log)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), a.Image)
			return err
		},
	}
}

// dirArg is the lambda's directory: this one where none is given.
func dirArg(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

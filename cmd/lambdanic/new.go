package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func newCommand(o *options) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "new NAME",
		Short:   "Begin a lambda: a spec, a source and a test",
		Example: "  lambdanic new hello\n  lambdanic deploy hello",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				dir = args[0]
			}
			if err := compiler.New(cmd.Context(), dir, args[0]); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), map[string]string{"name": args[0], "dir": dir})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is in %s: `lambdanic deploy %s` makes it serve\n", args[0], dir, dir)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "where to put it (a new directory NAME)")
	return cmd
}

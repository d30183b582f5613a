package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/cmd/lambdanic/internal/ui"
)

func removeCommand(o *options) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:               "remove NAME...",
		Aliases:           []string{"rm"},
		Short:             "Remove functions",
		Example:           "  lambdanic remove web_server",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeFunctions(o, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			for _, name := range args {
				if err := c.Remove(cmd.Context(), namespace, name); err != nil {
					return err
				}
				if !o.json {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is removed\n", name)
				}
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), map[string]any{"removed": args})
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "their namespace")
	return cmd
}

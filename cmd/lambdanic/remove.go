package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/ui"
)

func removeCommand(o *options) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:               "remove NAME[.NAMESPACE]...",
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
			removed := []string{}
			var errs []error
			for _, arg := range args { // a failure does not stop the others
				name, in := qualified(arg, namespace)
				if err := c.Remove(cmd.Context(), in, name); err != nil {
					errs = append(errs, err)
					continue
				}
				removed = append(removed, arg)
				if !o.json {
					fmt.Fprintf(cmd.OutOrStdout(), "%s is removed\n", arg)
				}
			}
			if o.json {
				errs = append(errs, ui.JSON(cmd.OutOrStdout(), map[string]any{"removed": removed}))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "their namespace")
	return cmd
}

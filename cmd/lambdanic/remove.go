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
			return o.removeEach(cmd, args, "", func(arg string) error {
				name, in := qualified(arg, namespace)
				return c.Remove(cmd.Context(), in, name)
			})
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "their namespace")
	return cmd
}

// removeEach removes each of the things that are named, and says so, with what kind of thing it is. One that fails does not stop the others.
func (o *options) removeEach(cmd *cobra.Command, names []string, kind string, remove func(name string) error) error {
	removed := []string{}
	var errs []error
	for _, name := range names {
		if err := remove(name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, name)
		if !o.json {
			fmt.Fprintf(cmd.OutOrStdout(), "%s%s is removed\n", kind, name)
		}
	}
	if o.json {
		errs = append(errs, ui.JSON(cmd.OutOrStdout(), map[string]any{"removed": removed}))
	}
	return errors.Join(errs...)
}

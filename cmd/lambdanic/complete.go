package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
)

// completionPatience is how long a shell waits for names.
const completionPatience = 2 * time.Second

// completeFunctions offers the names of deployed functions for up to most arguments, 0 for any number. Where no daemon
// answers, there are none.
func completeFunctions(o *options, most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := o.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		namespace := ""
		if f := cmd.Flags().Lookup("namespace"); f != nil {
			namespace = f.Value.String()
		}
		list, err := c.List(ctx, namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, f := range list {
			if !slices.Contains(args, f.Name) {
				names = append(names, f.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeTargets offers where a lambda can run.
func completeTargets(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return []cobra.Completion{string(api.TargetNIC), string(api.TargetProcess)}, cobra.ShellCompDirectiveNoFileComp
}

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func listCommand(o *options) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List functions",
		Example: "  lambdanic list\n  lambdanic list --json | jq '.[].name'",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			list, err := c.List(cmd.Context(), namespace)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), list)
			}
			if len(list) == 0 && namespace != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "there are no functions in namespace %s: `lambdanic namespace list` names all namespaces\n", namespace)
			}
			var rows [][]string
			for _, f := range list {
				rows = append(rows, []string{
					f.Name, f.Namespace, string(f.Target), string(f.State), fmt.Sprint(f.Revision), fmt.Sprintf("%#x", f.Workload),
					endpoint(&f), fmt.Sprint(f.InvocationCount),
				})
			}
			return ui.Table(cmd.OutOrStdout(),
				[]string{"NAME", "NAMESPACE", "TARGET", "STATE", "REVISION", "WORKLOAD", "ENDPOINT", "REQUESTS"}, rows)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only this namespace")
	return cmd
}

// askStage says how to call a lambda with a match stage, which λ-RPC never reaches.
func askStage(f *api.Function) string {
	return "has a match stage: send a UDP datagram to " + f.Endpoint.Addr().String() + ", at a port that its program parses"
}

// endpoint is where requests for f go, if it runs.
func endpoint(f *api.Function) string {
	if !f.Endpoint.IsValid() {
		return "-"
	}
	if f.Spec.P4 != "" {
		return f.Endpoint.Addr().String()
	}
	return f.Endpoint.String()
}

package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func describeCommand(o *options) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:               "describe NAME[.NAMESPACE]",
		Short:             "Say everything about a function: where it runs, and why not elsewhere",
		Example:           "  lambdanic describe web_server",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFunctions(o, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			name, in := qualified(args[0], namespace)
			f, err := c.Describe(cmd.Context(), in, name)
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), f)
			}
			return ui.Table(cmd.OutOrStdout(), nil, description(f))
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "its namespace")
	return cmd
}

// qualified splits NAME.NAMESPACE, as /function/ does. By default, the namespace is the flag's.
func qualified(arg, namespace string) (name, in string) {
	name, in, _ = strings.Cut(arg, ".")
	return name, cmp.Or(in, namespace)
}

// program says whether a function has a program of its own.
func program(f *api.Function) string {
	switch {
	case f.Fused == nil:
		return "its own"
	case len(f.Fused.With) == 0:
		return "fused, the others are gone: " + f.Fused.Image
	}
	return "fused with " + strings.Join(f.Fused.With, ", ") + ": " + f.Fused.Image
}

func description(f *api.Function) [][]string {
	rows := [][]string{
		{"name", f.Name},
		{"namespace", f.Namespace},
		{"state", string(f.State)},
	}
	if f.Reason != "" {
		rows = append(rows, lines("reason", f.Reason)...)
	}
	if f.Spec.P4 != "" && f.Endpoint.IsValid() {
		rows = append(rows, []string{"asked", "it " + askStage(f)})
	}
	rows = append(rows,
		[]string{"target", string(f.Target)},
		[]string{"endpoint", endpoint(f)},
		[]string{"workload", fmt.Sprintf("%#x", f.Workload)},
		[]string{"revision", fmt.Sprint(f.Revision)},
		[]string{"image", f.Image},
		[]string{"program", program(f)},
		[]string{"messages", fmt.Sprintf("%s, up to %d bytes", f.Spec.Message.Mode, f.Spec.Message.Max)},
		[]string{"requests", fmt.Sprint(f.InvocationCount)},
		[]string{"created", f.CreatedAt.Local().Format(time.RFC3339)},
		[]string{"updated", f.UpdatedAt.Local().Format(time.RFC3339)},
	)
	var targets []string
	for _, t := range f.Spec.Targets {
		targets = append(targets, string(t))
	}
	rows = append(rows, []string{"targets", strings.Join(targets, ", ")})
	for _, r := range f.Refused {
		rows = append(rows, lines("not on "+string(r.Target), r.Reason)...)
	}
	for _, s := range f.Spec.Services {
		rows = append(rows, []string{"service " + s.Name, fmt.Sprintf("%s at %s", s.Protocol, strings.Join(s.Servers(), ", "))})
	}
	return rows
}

// lines makes a row of each line of text, as a table joins the lines of a cell.
func lines(head, text string) (rows [][]string) {
	for line := range strings.SplitSeq(text, "\n") {
		rows = append(rows, []string{head, line})
		head = ""
	}
	return rows
}

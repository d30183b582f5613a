package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/metrics"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func statsCommand(o *options) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "stats [NAME[.NAMESPACE]...]",
		Short: "Show the functions' counters and how long they take",
		Long: "Show the functions' counters since their running revisions were loaded, and how long a run takes, of a sample.\n" +
			"Without a name, all functions are shown.\n" + explain(statsColumns),
		Example:           "  lambdanic stats\n  watch lambdanic stats web_server",
		ValidArgsFunction: completeFunctions(o, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			stats, err := c.Stats(cmd.Context())
			if err != nil {
				return err
			}
			if stats, err = choose(stats, args, namespace); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), stats)
			}
			head := []string{"NAME", "NAMESPACE", "TARGET"}
			for _, c := range statsColumns {
				head = append(head, c.head)
			}
			var rows [][]string
			for i := range stats {
				s := &stats[i]
				row := []string{s.Name, s.Namespace, string(s.Target)}
				for _, c := range statsColumns {
					row = append(row, c.cell(s))
				}
				rows = append(rows, row)
			}
			return ui.Table(cmd.OutOrStdout(), head, rows)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only this namespace")
	return cmd
}

// A statsColumn shows one number of every function.
type statsColumn struct {
	head, help string
	cell       func(*api.FunctionStats) string
}

var statsColumns = columns()

func columns() (all []statsColumn) {
	for _, c := range metrics.FunctionCounters {
		if c.Column != "" {
			all = append(all, statsColumn{c.Column, c.Help, func(s *api.FunctionStats) string { return fmt.Sprint(c.Value(&s.Stats)) }})
		}
	}
	return append(all,
		statsColumn{"MEAN", metrics.RunTime, mean},
		statsColumn{"P50", "The time that half of these runs stayed below, as a power of two in nanoseconds.", func(s *api.FunctionStats) string { return quantile(s, 0.5) }},
		statsColumn{"P99", "The same of 99 in 100 of them.", func(s *api.FunctionStats) string { return quantile(s, 0.99) }},
		statsColumn{"FAULTED BY", "The causes of the faults, and how many had each.", func(s *api.FunctionStats) string { return cmp.Or(s.FaultsBy.String(), "-") }},
	)
}

// explain describes the columns, with a line for each sentence.
func explain(columns []statsColumn) string {
	var text strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&text, "\n  %-16s%s", c.head, strings.ReplaceAll(c.help, ". ", ".\n"+strings.Repeat(" ", 18)))
	}
	return text.String()
}

// choose keeps the requested functions: by name, or all of a namespace.
func choose(all []api.FunctionStats, names []string, namespace string) ([]api.FunctionStats, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(all, func(s api.FunctionStats) bool { return namespace != "" && s.Namespace != namespace }), nil
	}
	var chosen []api.FunctionStats
	for _, arg := range names {
		name, in := qualified(arg, cmp.Or(namespace, api.DefaultNamespace))
		i := slices.IndexFunc(all, func(s api.FunctionStats) bool { return s.Name == name && s.Namespace == in })
		if i < 0 {
			return nil, fmt.Errorf("no such function runs: %s/%s: `lambdanic list` shows them all", in, name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func mean(s *api.FunctionStats) string {
	if s.Samples == 0 {
		return "-"
	}
	return time.Duration(s.SampledNS / s.Samples).String()
}

// quantile says below which bound of the log2 histogram a share of the samples lies.
func quantile(s *api.FunctionStats, q float64) string {
	var all, below uint64
	for _, n := range s.Histogram {
		all += n
	}
	for i, n := range s.Histogram {
		below += n
		if n > 0 && float64(below) >= q*float64(all) {
			return "<" + time.Duration(uint64(1)<<(i+1)).String()
		}
	}
	return "-"
}

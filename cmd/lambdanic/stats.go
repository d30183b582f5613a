package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/cmd/lambdanic/internal/ui"
)

func statsCommand(o *options) *cobra.Command {
	var namespace string
	cmd := &cobra.Command{
		Use:   "stats [NAME[.NAMESPACE]...]",
		Short: "Show the functions' counters and how long they take",
		Long: "Show the functions' counters since their running revisions were loaded, and how long a run takes, of a sample.\n" +
			"Without a name, all functions are shown.",
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
			var rows [][]string
			for _, s := range stats {
				rows = append(rows, []string{
					s.Name, s.Namespace, string(s.Target), fmt.Sprint(s.Requests), fmt.Sprint(s.Replies), fmt.Sprint(s.Errors), fmt.Sprint(s.Drops),
					fmt.Sprint(s.Calls), fmt.Sprint(s.Faults), fmt.Sprint(s.Late), mean(&s), quantile(&s, 0.5), quantile(&s, 0.99),
					cmp.Or(s.FaultsBy.String(), "-"),
				})
			}
			return ui.Table(cmd.OutOrStdout(), []string{
				"NAME", "NAMESPACE", "TARGET", "REQUESTS", "REPLIES", "ERRORS", "DROPS", "CALLS", "FAULTS", "LATE", "MEAN", "P50", "P99", "FAULTED BY",
			}, rows)
		},
	}
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "only this namespace")
	return cmd
}

// choose keeps what is asked for: functions by name, or all of a namespace.
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

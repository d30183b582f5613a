package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/cmd/lambdanic/internal/ui"
)

func statsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Show the functions' counters and how long they take",
		Long:    "Show the functions' counters since their running revisions were loaded, and how long a run takes, of a sample.",
		Example: "  lambdanic stats\n  watch lambdanic stats",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.client()
			if err != nil {
				return err
			}
			stats, err := c.Stats(cmd.Context())
			if err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), stats)
			}
			var rows [][]string
			for _, s := range stats {
				rows = append(rows, []string{
					s.Name, string(s.Target), fmt.Sprint(s.Requests), fmt.Sprint(s.Replies), fmt.Sprint(s.Errors), fmt.Sprint(s.Drops),
					fmt.Sprint(s.Calls), fmt.Sprint(s.Faults), mean(&s), quantile(&s, 0.5), quantile(&s, 0.99),
				})
			}
			return ui.Table(cmd.OutOrStdout(), []string{
				"NAME", "TARGET", "REQUESTS", "REPLIES", "ERRORS", "DROPS", "CALLS", "FAULTS", "MEAN", "P50", "P99",
			}, rows)
		},
	}
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

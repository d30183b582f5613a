package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/apps/othello"
	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/sim/nanoservice"
)

// othelloTiming is a depth of `othello bench --json`.
type othelloTiming struct {
	Depth      int     `json:"depth"`
	Searches   int     `json:"searches"`
	Nodes      float64 `json:"nodes"` // the mean
	MeanNS     int64   `json:"mean_ns"`
	P50NS      int64   `json:"p50_ns"`
	P99NS      int64   `json:"p99_ns"`
	LNICP99NS  int64   `json:"lnic_p99_ns,omitempty"` // simulated
	Ratio      float64 `json:"ratio,omitempty"`       // of both 99th percentiles
	PaperRatio float64 `json:"paper_ratio,omitempty"`
}

func othelloBenchCommand(o *options) *cobra.Command {
	var depth, positions int
	var seed uint64
	var out simOutput
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how long a search takes on one core, and compare it with many hosts",
		Long: "Measure how long a search takes on one core, for each depth up to --depth, over positions in the middle of random games. Beside it\n" +
			"stands what 2,500 hosts with an L-NIC take that takes in the answers (simulated, as by `lambdanic sim nanoservice paper figure6`),\n" +
			"how many times less that is, and what the L-NIC paper has for it (The Case for a Network Fast Path to the CPU, HotNets 2019).",
		Example: "  lambdanic othello bench --plot othello.svg\n  lambdanic othello bench --depth 5 --positions 1000 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOthelloDepth(depth); err != nil {
				return err
			}
			if positions < 1 || positions > 1_000_000 {
				return fmt.Errorf("--positions %d: there have to be 1 to 1000000", positions)
			}
			if err := out.check(o); err != nil {
				return err
			}
			list, err := othelloTimings(cmd, othello.MidGames(seed, positions), depth)
			if err != nil {
				return err
			}
			if err := compareWithHosts(cmd, list, seed); err != nil {
				return err
			}
			return out.write(cmd, o, list, othelloTimingHead, othelloTimingCells(list), func(w io.Writer) error { return drawOthelloTimings(w, list) })
		},
	}
	f := cmd.Flags()
	f.IntVar(&depth, "depth", 8, "the greatest depth")
	f.IntVar(&positions, "positions", 300, "how many positions")
	f.Uint64Var(&seed, "seed", 1, "where the random numbers begin")
	out.flags(cmd)
	return cmd
}

func othelloTimings(cmd *cobra.Command, boards []othello.Board, deepest int) (list []othelloTiming, err error) {
	for depth := 1; depth <= deepest; depth++ {
		end := ui.Progress(cmd.ErrOrStderr(), fmt.Sprintf("searching to depth %d of %d", depth, deepest))
		t, err := othello.Time(cmd.Context(), boards, depth)
		end()
		if err != nil {
			return nil, fmt.Errorf("search to depth %d: %w", depth, err)
		}
		list = append(list, othelloTiming{
			Depth: depth, Searches: len(t.Times), Nodes: float64(t.Nodes) / float64(len(t.Times)),
			MeanNS: t.Mean().Nanoseconds(), P50NS: t.Percentile(50).Nanoseconds(), P99NS: t.Percentile(99).Nanoseconds(),
		})
	}
	return list, nil
}

// compareWithHosts adds what the simulated hosts take, for the depths that the paper has.
func compareWithHosts(cmd *cobra.Command, list []othelloTiming, seed uint64) error {
	var depths []int
	for depth := 1; depth <= min(len(list), nanoservice.PaperDepth); depth++ {
		depths = append(depths, depth)
	}
	study := nanoservice.OthelloOffloaded(seed, depths...)
	progress, end := watch(cmd, "runs")
	study.Progress = progress
	outcomes, err := study.Run(cmd.Context())
	end()
	if err != nil {
		return err
	}
	for i := range outcomes {
		l := &list[i]
		l.LNICP99NS = outcomes[i].Percentile(99).Duration().Nanoseconds()
		l.Ratio = float64(l.P99NS) / float64(l.LNICP99NS)
		if l.Depth == nanoservice.PaperRatioDepth {
			l.PaperRatio = nanoservice.PaperRatio
		}
	}
	return nil
}

var othelloTimingHead = []column{
	{"DEPTH", "depth"}, {"NODES", "nodes"}, {"MEAN µs", "mean_us"}, {"P50 µs", "p50_us"}, {"P99 µs", "p99_us"}, {"L-NIC P99 µs", "lnic_p99_us"},
	{"RATIO", "ratio"}, {"PAPER'S", "paper_ratio"},
}

func othelloTimingCells(list []othelloTiming) (cells [][]string) {
	us := func(ns int64) string { return twoDigits(float64(ns) / 1000) }
	for _, l := range list {
		row := []string{strconv.Itoa(l.Depth), fmt.Sprintf("%.0f", l.Nodes), us(l.MeanNS), us(l.P50NS), us(l.P99NS), "-", "-", "-"}
		if l.LNICP99NS > 0 {
			row[5], row[6] = us(l.LNICP99NS), fmt.Sprintf("%.1f", l.Ratio)
		}
		if l.PaperRatio > 0 {
			row[7] = fmt.Sprintf("%.0f", l.PaperRatio)
		}
		cells = append(cells, row)
	}
	return cells
}

// drawOthelloTimings draws the times over the depth.
func drawOthelloTimings(w io.Writer, list []othelloTiming) error {
	mean, tail := chart.Line{Name: "one core, mean"}, chart.Line{Name: "one core, 99th percentile"}
	hosts := chart.Line{Name: "2,500 hosts with L-NIC, 99th percentile", Dashed: true}
	most := 0.0
	for _, l := range list {
		point := func(ns int64) chart.Point {
			return chart.Point{X: float64(l.Depth), Y: float64(max(ns, 1)) / float64(time.Microsecond)} // the axis has no place for 0
		}
		mean.Points, tail.Points = append(mean.Points, point(l.MeanNS)), append(tail.Points, point(l.P99NS))
		if l.LNICP99NS > 0 {
			hosts.Points = append(hosts.Points, point(l.LNICP99NS))
		}
		most = max(most, point(l.P99NS).Y, point(l.LNICP99NS).Y)
	}
	return chart.Draw(w, chart.Chart{
		Title: "Searches of Othello", X: chart.Axis{Label: "depth"}, Y: chart.Axis{Label: "time (µs)", Log: true, Max: 100 * most}, // room for the legend
		Lines: []chart.Line{mean, tail, hosts},
	})
}

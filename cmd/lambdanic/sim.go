package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/ui"
	"github.com/lambdanic/lambdanic/sim/nanoservice"
	"github.com/lambdanic/lambdanic/sim/random"
)

func simCommand(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sim",
		Short:   "Simulate clusters larger than yours",
		Long:    "Simulate clusters larger than yours, on this machine alone: nothing is deployed. Each seed gives the same result everywhere.",
		Example: "  lambdanic sim nanoservice paper figure5 --plot figure5.svg",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	nano := &cobra.Command{
		Use:     "nanoservice",
		Short:   "Simulate requests of about a microsecond, and their path from the wire to a core",
		Example: "  lambdanic sim nanoservice paper figure5 --plot figure5.svg\n  lambdanic sim nanoservice tree --depth 3,4,5",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	nano.AddCommand(simTreeCommand(o), simPaperCommand(o))
	cmd.AddCommand(nano)
	return cmd
}

// simOutput is where results go.
type simOutput struct {
	csv  bool
	plot string
}

func (s *simOutput) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.csv, "csv", false, "print results as CSV")
	cmd.Flags().StringVar(&s.plot, "plot", "", "also draw them to this file, as SVG")
}

func simPaperCommand(o *options) *cobra.Command {
	var seed uint64
	var runs int
	var out simOutput
	cmd := &cobra.Command{
		Use:   "paper EXPERIMENT",
		Short: "Repeat an experiment of the L-NIC paper",
		Long: "Repeat an experiment of the L-NIC paper (The Case for a Network Fast Path to the CPU, HotNets 2019):\n" +
			"table2, how busy hosts are; figure5, how long searches of a game take; and figure6, by their depths.\n" +
			"CPU % is for how much of the time the hosts' cores worked, in the mean of all.",
		Example:   "  lambdanic sim nanoservice paper table2\n  lambdanic sim nanoservice paper figure5 --plot figure5.svg",
		Args:      cobra.ExactArgs(1),
		ValidArgs: nanoservice.Paper,
		RunE: func(cmd *cobra.Command, args []string) error {
			study, err := nanoservice.Experiment(args[0], seed)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("runs") {
				study.Runs = runs
			}
			return runStudy(cmd, o, study, out)
		},
	}
	cmd.Flags().IntVar(&runs, "runs", 300, "searches of each kind; table2 needs one alone")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of the first run; the others take the seeds that follow")
	out.flags(cmd)
	return cmd
}

func simTreeCommand(o *options) *cobra.Command {
	var (
		hosts, runs                        int
		depths                             []int
		interfaces                         []string
		mapTime, branches, reduce, oneWire string
		offload                            bool
		seed                               uint64
		out                                simOutput
	)
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Simulate the search of a game's tree, spread over many hosts by small messages",
		Long: "Simulate the search of a game's tree: each host searches a position (map), sends the positions one move on to other hosts,\n" +
			"and sums up their answers (reduce). The defaults are the L-NIC paper's, as measured of Othello.\n\n" +
			"A distribution of times is " + random.Syntax + ".\n" +
			"CPU % is for how much of the time the hosts' cores worked, in the mean of all.",
		Example: "  lambdanic sim nanoservice tree --depth 3,4,5 --hosts 10000 --plot depths.svg\n" +
			"  lambdanic sim nanoservice tree --map exponential:1us --branches 5 --interface dma,lnic:100ns --json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			tree := nanoservice.Tree{Hosts: hosts, Branches: nanoservice.OthelloBranches, Map: nanoservice.OthelloMap}
			var err error
			if mapTime != measured {
				if tree.Map, err = random.ParseTime(mapTime); err != nil {
					return fmt.Errorf("--map: %w", err)
				}
			}
			if branches != measured {
				if tree.Branches, err = random.ParseCount(branches); err != nil {
					return fmt.Errorf("--branches: %w", err)
				}
			}
			if tree.Reduce, err = random.ParseFixed(reduce); err != nil {
				return fmt.Errorf("--reduce: %w", err)
			}
			if tree.Wire, err = random.ParseFixed(oneWire); err != nil {
				return fmt.Errorf("--wire: %w", err)
			}
			study := &nanoservice.Study{Runs: runs, Seed: seed}
			for _, depth := range depths {
				for _, name := range interfaces {
					c := nanoservice.Case{Tree: tree}
					if c.Interface, err = nanoservice.ParseInterface(name); err != nil {
						return fmt.Errorf("--interface: %w", err)
					}
					c.Name, c.Depth = c.Interface.Name, depth
					study.Trees = append(study.Trees, c)
					if offload {
						c.Name, c.Reduce = c.Name+", reduce in the NIC", 0
						study.Trees = append(study.Trees, c)
					}
				}
			}
			return runStudy(cmd, o, study, out)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&hosts, "hosts", 2500, "hosts, of one core each")
	flags.IntSliceVar(&depths, "depth", []int{5}, "levels of the tree")
	flags.StringSliceVar(&interfaces, "interface", []string{"dma", "ddio", "lnic:200ns"}, "paths between NIC and core: dma, ddio, lnic:DELAY")
	flags.StringVar(&mapTime, "map", measured, "time to search a position: othello, or a distribution")
	flags.StringVar(&branches, "branches", measured, "moves of a position: othello, or a number")
	flags.StringVar(&reduce, "reduce", "500ns", "time to take in an answer")
	flags.BoolVar(&offload, "offload", false, "show also what becomes of it if the NICs take in the answers")
	flags.StringVar(&oneWire, "wire", "1us", "time from NIC to NIC")
	flags.IntVar(&runs, "runs", 300, "searches of each kind")
	flags.Uint64Var(&seed, "seed", 1, "of the first search; the others take the seeds that follow")
	out.flags(cmd)
	return cmd
}

// measured is the distribution that the paper measured.
const measured = "othello"

// simRow is a line of results; times are in µs.
type simRow struct {
	Name        string    `json:"name"`
	Hosts       int       `json:"hosts"`
	Depth       int       `json:"depth"`
	Runs        int       `json:"runs"`
	Mean        float64   `json:"mean_us"`
	P50         float64   `json:"p50_us"`
	P99         float64   `json:"p99_us"`
	Utilisation float64   `json:"utilisation"`
	Messages    uint64    `json:"messages"`
	Finish      []float64 `json:"finish_us"` // of each run, ascending
}

func runStudy(cmd *cobra.Command, o *options, study *nanoservice.Study, out simOutput) error {
	if ext := filepath.Ext(out.plot); out.plot != "" && ext != ".svg" {
		return fmt.Errorf("--plot %s: it is drawn as SVG: name it %s.svg", out.plot, strings.TrimSuffix(out.plot, ext))
	}
	var done, all atomic.Int64
	study.Progress = func(n, of int) {
		done.Store(int64(n))
		all.Store(int64(of))
	}
	end := ui.Watch(cmd.ErrOrStderr(), func() string { return fmt.Sprintf("%d of %d runs", done.Load(), all.Load()) })
	outcomes, err := study.Run(cmd.Context())
	end()
	if err != nil {
		return err
	}
	if out.plot != "" {
		if err := writePlot(out.plot, outcomes); err != nil {
			return err
		}
	}
	var rows []simRow
	for i := range outcomes {
		rows = append(rows, newSimRow(&outcomes[i]))
	}
	switch {
	case o.json:
		return ui.JSON(cmd.OutOrStdout(), rows)
	case out.csv:
		return writeCSV(cmd.OutOrStdout(), rows)
	}
	return ui.Table(cmd.OutOrStdout(), simHead, simCells(rows))
}

func newSimRow(o *nanoservice.Outcome) simRow {
	r := simRow{
		Name: o.Name, Hosts: o.Hosts, Depth: o.Depth, Runs: len(o.Finish), Mean: o.Mean().Micros(), P50: o.Percentile(50).Micros(),
		P99: o.Percentile(99).Micros(), Utilisation: o.Utilisation, Messages: o.Messages,
	}
	for _, f := range o.Finish {
		r.Finish = append(r.Finish, f.Micros())
	}
	return r
}

var simHead = []string{"PATH", "HOSTS", "DEPTH", "RUNS", "MEAN µs", "P50 µs", "P99 µs", "CPU %"}

func simCells(rows []simRow) (cells [][]string) {
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
	for _, r := range rows {
		cells = append(cells, []string{
			r.Name, strconv.Itoa(r.Hosts), strconv.Itoa(r.Depth), strconv.Itoa(r.Runs), number(r.Mean), number(r.P50), number(r.P99), number(100 * r.Utilisation),
		})
	}
	return cells
}

// writeCSV has names that spreadsheets and scripts take.
func writeCSV(w io.Writer, rows []simRow) error {
	c := csv.NewWriter(w)
	head := []string{"name", "hosts", "depth", "runs", "mean_us", "p50_us", "p99_us", "utilisation_percent"}
	if err := c.WriteAll(slices.Concat([][]string{head}, simCells(rows))); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

func writePlot(path string, outcomes []nanoservice.Outcome) error {
	var b strings.Builder
	if err := nanoservice.Draw(&b, outcomes); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/sim/nanoservice"
	"github.com/lambdanic/lambdanic/sim/random"
)

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

// simTree is what `lambdanic sim nanoservice tree` is asked for.
type simTree struct {
	tree                            nanoservice.Tree
	runs                            int
	depths                          []int
	interfaces                      []string
	mapTime, branches, reduce, wire string
	network                         simNetwork
	offload                         bool
	seed                            uint64
	out                             simOutput
}

func simTreeCommand(o *options) *cobra.Command {
	s := new(simTree)
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
			study, err := s.study(cmd)
			if err != nil {
				return err
			}
			return runStudy(cmd, o, study, s.out)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&s.tree.Hosts, "hosts", 2500, "hosts, of one core each")
	flags.IntSliceVar(&s.depths, "depth", []int{5}, "levels of the tree")
	flags.StringSliceVar(&s.interfaces, "interface", []string{"dma", "ddio", "lnic:200ns"}, "paths between NIC and core: dma, ddio, lnic:DELAY")
	flags.StringVar(&s.mapTime, "map", measured, "time to search a position: othello, or a distribution")
	flags.StringVar(&s.branches, "branches", measured, "moves of a position: othello, or a number")
	flags.StringVar(&s.reduce, "reduce", "500ns", "time to take in an answer")
	flags.BoolVar(&s.offload, "offload", false, "show also what becomes of it if the NICs take in the answers")
	flags.StringVar(&s.wire, "wire", "1us", "time from NIC to NIC; with --network, from a host to the switch")
	s.network.flags(cmd, "message-bytes")
	flags.IntVar(&s.tree.Bytes, "message-bytes", 64, "of a message (--network)")
	flags.IntVar(&s.runs, "runs", 300, "searches of each kind")
	flags.Uint64Var(&s.seed, "seed", 1, "of the first search; the others take the seeds that follow")
	s.out.flags(cmd)
	return cmd
}

// study is what the flags ask for.
func (s *simTree) study(cmd *cobra.Command) (*nanoservice.Study, error) {
	tree := s.tree
	tree.Branches, tree.Map = nanoservice.OthelloBranches, nanoservice.OthelloMap
	var err error
	if s.mapTime != measured {
		if tree.Map, err = random.ParseTime(s.mapTime); err != nil {
			return nil, fmt.Errorf("--map: %w", err)
		}
	}
	if s.branches != measured {
		if tree.Branches, err = random.ParseCount(s.branches); err != nil {
			return nil, fmt.Errorf("--branches: %w", err)
		}
	}
	if tree.Reduce, err = random.ParseFixed(s.reduce); err != nil {
		return nil, fmt.Errorf("--reduce: %w", err)
	}
	if tree.Wire, err = random.ParseFixed(s.wire); err != nil {
		return nil, fmt.Errorf("--wire: %w", err)
	}
	if tree.Network, err = s.network.config(cmd, tree.Wire); err != nil {
		return nil, err
	}
	study := &nanoservice.Study{Runs: s.runs, Seed: s.seed}
	for _, depth := range s.depths {
		for _, name := range s.interfaces {
			c := nanoservice.Case{Tree: tree}
			if c.Interface, err = nanoservice.ParseInterface(name); err != nil {
				return nil, fmt.Errorf("--interface: %w", err)
			}
			c.Name, c.Depth = c.Interface.Name, depth
			study.Trees = append(study.Trees, c)
			if s.offload {
				c.Name, c.Reduce = c.Name+", reduce in the NIC", 0
				study.Trees = append(study.Trees, c)
			}
		}
	}
	return study, nil
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
	if err := out.check(o); err != nil {
		return err
	}
	progress, end := watch(cmd, "runs")
	study.Progress = progress
	outcomes, err := study.Run(cmd.Context())
	end()
	if err != nil {
		return err
	}
	var rows []simRow
	for i := range outcomes {
		rows = append(rows, newSimRow(&outcomes[i]))
	}
	draw := func(w io.Writer) error { return nanoservice.Draw(w, outcomes) }
	return out.write(cmd, o, rows, simHead, simCells(rows), draw)
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

var simHead = []column{
	{"PATH", "name"}, {"HOSTS", "hosts"}, {"DEPTH", "depth"}, {"RUNS", "runs"}, {"MEAN µs", "mean_us"}, {"P50 µs", "p50_us"}, {"P99 µs", "p99_us"},
	{"CPU %", "utilisation_percent"},
}

func simCells(rows []simRow) (cells [][]string) {
	for _, r := range rows {
		cells = append(cells, []string{
			r.Name, strconv.Itoa(r.Hosts), strconv.Itoa(r.Depth), strconv.Itoa(r.Runs), twoDigits(r.Mean), twoDigits(r.P50), twoDigits(r.P99), twoDigits(100 * r.Utilisation),
		})
	}
	return cells
}

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/apps/othello"
	"github.com/lambdanic/lambdanic/internal/ui"
)

func othelloCommand(o *options) *cobra.Command {
	g := &othelloGame{human: othello.Black}
	colour := othello.Black.String()
	cmd := &cobra.Command{
		Use:   "othello",
		Short: "Play Othello, or search it on one core or many hosts",
		Long: "Play Othello against this program, or with --two against somebody beside you. Black begins. A move is written as d3; `help` names\n" +
			"what else can be written. With --json, the board goes to standard error, and the game, when it ends, to standard output.",
		Example: "  lambdanic othello\n  lambdanic othello --colour white --depth 8\n  lambdanic othello --two",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if g.human, err = othello.ParseSide(colour); err != nil {
				return fmt.Errorf("--colour: %w", err)
			}
			if err := checkOthelloDepth(g.depth); err != nil {
				return err
			}
			g.out = cmd.OutOrStdout()
			if o.json {
				g.out = cmd.ErrOrStderr()
			}
			g.progress = cmd.ErrOrStderr()
			if err := g.play(cmd.Context(), readLines(cmd.Context(), cmd.InOrStdin())); err != nil || !o.json {
				return err
			}
			return ui.JSON(cmd.OutOrStdout(), g.result())
		},
	}
	f := cmd.Flags()
	f.IntVar(&g.depth, "depth", 6, "how many moves the program looks ahead: its level")
	f.StringVar(&colour, "colour", colour, "`side` that you play: black or white")
	f.BoolVar(&g.two, "two", false, "two persons play")
	cmd.MarkFlagsMutuallyExclusive("two", "colour")
	for _, c := range []*cobra.Command{othelloPerftCommand(o), othelloSearchCommand(o), othelloBenchCommand(o)} {
		c.Args = explained(c.Args)
		cmd.AddCommand(c)
	}
	return cmd
}

func checkOthelloDepth(depth int) error {
	if depth < 1 || depth > othello.MaxDepth {
		return fmt.Errorf("--depth %d: it has to be from 1 to %d", depth, othello.MaxDepth)
	}
	return nil
}

// othelloPosition is what a command's first argument says, or the start.
func othelloPosition(args []string) (othello.Position, error) {
	if len(args) == 0 {
		return othello.StartPosition(), nil
	}
	return othello.ParsePosition(args[0])
}

// othelloCount is what `othello perft --json` prints.
type othelloCount struct {
	Position  string  `json:"position"`
	Depth     int     `json:"depth"`
	PassFree  bool    `json:"pass_free"`
	Positions uint64  `json:"positions"`
	Seconds   float64 `json:"seconds"`
}

func othelloPerftCommand(o *options) *cobra.Command {
	c := othelloCount{}
	cmd := &cobra.Command{
		Use:   "perft [POSITION]",
		Short: "Count the positions that are some moves away",
		Long: "Count the positions that are --depth moves away, and those where the game ends before. There are published numbers for the start\n" +
			"of the game, so this checks and times how moves are found.\n\nPOSITION is " + othello.PositionSyntax + ".",
		Example:           "  lambdanic othello perft --depth 9\n  lambdanic othello perft --depth 10 --pass-free --json",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := othelloPosition(args)
			if err != nil {
				return err
			}
			if err := checkOthelloDepth(c.Depth); err != nil {
				return err
			}
			end := ui.Progress(cmd.ErrOrStderr(), "counting")
			start := time.Now()
			c.Position = p.String()
			c.Positions, err = othello.Perft(cmd.Context(), p.Board, c.Depth, c.PassFree)
			took := time.Since(start)
			c.Seconds = took.Seconds()
			end()
			if err != nil {
				return fmt.Errorf("count to depth %d: %w", c.Depth, err)
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), c)
			}
			return ui.Table(cmd.OutOrStdout(), []string{"DEPTH", "POSITIONS", "TIME", "MILLIONS/S"}, [][]string{{
				fmt.Sprint(c.Depth), fmt.Sprint(c.Positions), took.Round(time.Microsecond).String(), fmt.Sprintf("%.1f", float64(c.Positions)/c.Seconds/1e6),
			}})
		},
	}
	cmd.Flags().IntVar(&c.Depth, "depth", 9, "how many moves away")
	cmd.Flags().BoolVar(&c.PassFree, "pass-free", false, "a pass does not count as a move")
	return cmd
}

// othelloFound is what `othello search --json` prints.
type othelloFound struct {
	Position  string  `json:"position"`
	Depth     int     `json:"depth"`
	Best      string  `json:"best"`  // a square, pass, or - where the game is over
	Value     int     `json:"value"` // for the side to move
	Exact     bool    `json:"exact"` // the value is that of the game's end: a victory counts 10000 and a disc 1
	Nodes     uint64  `json:"nodes"`
	Seconds   float64 `json:"seconds"`
	Hosts     int     `json:"hosts,omitempty"`
	Transport string  `json:"transport,omitempty"`
}

// mostDistributed is the greatest depth of a search without pruning: some hundred million positions.
const mostDistributed = 9

func othelloSearchCommand(o *options) *cobra.Command {
	var depth, hosts int
	var transport string
	cmd := &cobra.Command{
		Use:   "search [POSITION]",
		Short: "Find the best move of a position",
		Long: "Find the best move of a position by looking --depth moves ahead: by alpha-beta on one core, or with --distributed by messages\n" +
			"between hosts, which are in this process and look at every position. The value is the same.\n\nPOSITION is " + othello.PositionSyntax + ".",
		Example: "  lambdanic othello search --depth 8\n  lambdanic othello search --depth 4 --distributed 8 --json\n" +
			"  lambdanic othello search \"...........................OX......XO........................... X\" --depth 4 --distributed 4 --transport queues",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := othelloPosition(args)
			if err != nil {
				return err
			}
			if err := checkOthelloDepth(depth); err != nil {
				return err
			}
			found := othelloFound{Position: p.String(), Depth: depth}
			switch {
			case cmd.Flags().Changed("distributed") && depth > mostDistributed:
				return fmt.Errorf("--depth %d: hosts look at every position, so that %d is the most with --distributed", depth, mostDistributed)
			case cmd.Flags().Changed("distributed"):
				found.Hosts, found.Transport = hosts, transport
			case cmd.Flags().Changed("transport"):
				return errors.New("--transport is for hosts: give --distributed, too")
			}
			if err := found.search(cmd, p.Board); err != nil {
				return err
			}
			if o.json {
				return ui.JSON(cmd.OutOrStdout(), found)
			}
			return found.print(cmd, p.Turn)
		},
	}
	f := cmd.Flags()
	f.IntVar(&depth, "depth", 6, "how many moves to look ahead")
	f.IntVar(&hosts, "distributed", 0, "search with so many `hosts`")
	f.StringVar(&transport, "transport", "udp", "what carries the hosts' messages: udp (on loopback) or queues (in memory)")
	return cmd
}

// search fills in what a search finds.
func (f *othelloFound) search(cmd *cobra.Command, b othello.Board) error {
	search := othello.Search
	if f.Transport != "" {
		cluster, err := othelloCluster(f.Hosts, f.Transport)
		if err != nil {
			return err
		}
		defer cluster.Close()
		search = cluster.Search
	}
	defer ui.Progress(cmd.ErrOrStderr(), "searching")()
	start := time.Now()
	r, err := search(cmd.Context(), b, f.Depth)
	if err != nil {
		return fmt.Errorf("search to depth %d: %w", f.Depth, err)
	}
	f.Seconds = time.Since(start).Seconds()
	f.Best, f.Value, f.Nodes = othello.SquareName(r.Best), int(r.Value), r.Nodes
	f.Exact = r.Value.Decided() || b.Over()
	return nil
}

func othelloCluster(hosts int, transport string) (c *othello.Cluster, err error) {
	switch transport {
	case "udp":
		c, err = othello.NewUDP(hosts)
	case "queues":
		c, err = othello.NewLocal(hosts)
	default:
		return nil, fmt.Errorf("--transport %q: it has to be udp or queues", transport)
	}
	if err != nil {
		return nil, fmt.Errorf("--distributed: %w", err)
	}
	return c, nil
}

func (f *othelloFound) print(cmd *cobra.Command, turn othello.Side) error {
	took := time.Duration(f.Seconds * float64(time.Second)).Round(100 * time.Nanosecond)
	return ui.Table(cmd.OutOrStdout(), []string{"DEPTH", "BEST", "VALUE", "NODES", "TIME"}, [][]string{{
		fmt.Sprint(f.Depth), f.Best, othelloValue(othello.Value(f.Value), turn), fmt.Sprint(f.Nodes), took.String(),
	}})
}

// othelloValue says what a value is for who moves.
func othelloValue(v othello.Value, turn othello.Side) string {
	switch lead := v.Lead(); {
	case lead > 0:
		return fmt.Sprintf("%s wins by %d", turn, lead)
	case lead < 0:
		return fmt.Sprintf("%s wins by %d", !turn, -lead)
	}
	return fmt.Sprintf("%+d", v)
}

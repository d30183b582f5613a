package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// clusterPaper is what `lambdanic sim cluster paper` is asked for.
type clusterPaper struct {
	scale    clusterScale
	shards   int
	fill     float64
	requests int
	out      simOutput
}

func simClusterPaperCommand(o *options) *cobra.Command {
	p := new(clusterPaper)
	cmd := &cobra.Command{
		Use:   "paper EXPERIMENT",
		Short: "Repeat an experiment of the E3 paper",
		Long: "Repeat an experiment of the E3 paper (Energy-Efficient Microservices on SmartNIC-Accelerated Servers, ATC 2019), and show the\n" +
			"paper's numbers beside, where it has them:\n" +
			"table5, energy efficiency of three applications on five clusters; figure6, policies of placement compared (--policy, --fill, --shards);\n" +
			"table6, the time to place (--policy, --servers, --microservices); and figure10, requests for a dollar by years of ownership.",
		Example:   "  lambdanic sim cluster paper table5\n  lambdanic sim cluster paper figure6 --policy hcm,ilp --shards 3\n  lambdanic sim cluster paper figure10 --plot figure10.svg",
		Args:      cobra.ExactArgs(1),
		ValidArgs: cluster.Paper,
		RunE: func(cmd *cobra.Command, args []string) error {
			run, ok := map[string]func(*cobra.Command, *options) error{
				"table5": p.table5, "figure6": p.figure6, "table6": p.table6, "figure10": p.figure10,
			}[args[0]]
			if !ok {
				return fmt.Errorf("experiment %q: there are %s", args[0], strings.Join(cluster.Paper, ", "))
			}
			if err := p.out.check(o); err != nil {
				return err
			}
			if err := onlyOf(cmd, args[0]); err != nil {
				return err
			}
			return run(cmd, o)
		},
	}
	p.scale.flags(cmd)
	f := cmd.Flags()
	f.Lookup("policy").Usage = "policies: hcm, spread, anneal, ilp (figure6, which has the first three by default, and table6)"
	f.Float64Var(&p.fill, "fill", 0.1, fillUsage+" (figure6)")
	f.IntVar(&p.shards, "shards", cluster.Shards, "of the microservices that have the most of them (figure6); the ILP has answers for few, like 3")
	f.IntVar(&p.requests, "requests", 20_000, "requests that are measured, of each load (figure6)")
	p.out.flags(cmd)
	return cmd
}

// paperFlags are those that experiments take beside those of all.
var paperFlags = map[string][]string{
	"figure6": {"policy", "fill", "shards", "requests", "seed", "timeout"},
	"table6":  {"policy", "servers", "microservices", "seed", "timeout"},
}

// onlyOf refuses flags that another experiment takes.
func onlyOf(cmd *cobra.Command, experiment string) error {
	for _, of := range cluster.Paper {
		for _, name := range paperFlags[of] {
			if !cmd.Flags().Changed(name) || slices.Contains(paperFlags[experiment], name) {
				continue
			}
			if len(paperFlags[experiment]) == 0 {
				return fmt.Errorf("--%s: %s has the paper's setup alone; `lambdanic sim cluster run` has one of your own", name, experiment)
			}
			return fmt.Errorf("--%s: %s takes only --%s", name, experiment, strings.Join(paperFlags[experiment], ", --"))
		}
	}
	return nil
}

func (p *clusterPaper) table6(cmd *cobra.Command, o *options) error {
	p.scale.out = p.out
	return p.scale.run(cmd, o)
}

// efficiencyRow is a line of Table 5.
type efficiencyRow struct {
	Cluster     string  `json:"cluster"`
	Application string  `json:"application"`
	Peak        float64 `json:"peak_requests_per_second"`
	ActiveKRPJ  float64 `json:"active_krpj"`
	WallKRPJ    float64 `json:"wall_krpj"`
	Paper       float64 `json:"paper_wall_krpj"`
}

func (p *clusterPaper) table5(cmd *cobra.Command, o *options) error {
	all, err := cluster.Default().Table5(cmd.Context())
	if err != nil {
		return err
	}
	var rows []efficiencyRow
	var cells [][]string
	for i := range all {
		e := &all[i]
		r := efficiencyRow{e.Cluster, e.Application, e.Peak, e.ActiveKRPJ(), e.WallKRPJ(), e.Paper}
		rows = append(rows, r)
		cells = append(cells, []string{r.Cluster, r.Application, whole(r.Peak), threeDigits(r.ActiveKRPJ), threeDigits(r.WallKRPJ), strconv.FormatFloat(r.Paper, 'f', 1, 64)})
	}
	head := []column{
		{"CLUSTER", "cluster"}, {"APPLICATION", "application"}, {"REQUESTS/S", "peak_requests_per_second"}, {"ACTIVE KRPJ", "active_krpj"},
		{"WALL KRPJ", "wall_krpj"}, {"PAPER", "paper_wall_krpj"},
	}
	return p.out.write(cmd, o, rows, head, cells, func(w io.Writer) error { return drawTable5(w, rows) })
}

// drawTable5 draws each application's clusters side by side.
func drawTable5(w io.Writer, rows []efficiencyRow) error {
	var names []string
	c := chart.Chart{Title: "Energy efficiency, and E3's Table 5 (dashed)", Y: chart.Axis{Label: "thousands of requests per joule", Log: true, Max: 1000}}
	for _, r := range rows {
		at := slices.Index(names, r.Application)
		if at < 0 {
			at = len(names)
			names = append(names, r.Application)
			c.Lines = append(c.Lines, chart.Line{Name: r.Application, Like: 1 + at}, chart.Line{Like: 1 + at, Dashed: true})
		}
		x := float64(len(c.Lines[2*at].Points))
		if at == 0 {
			c.X.Ticks = append(c.X.Ticks, chart.Tick{Value: x, Label: strings.ReplaceAll(strings.ReplaceAll(r.Cluster, "-SmartNIC", ""), "+", "\n+")})
		}
		c.Lines[2*at].Points = append(c.Lines[2*at].Points, chart.Point{X: x, Y: r.WallKRPJ})
		c.Lines[2*at+1].Points = append(c.Lines[2*at+1].Points, chart.Point{X: x, Y: r.Paper})
	}
	return chart.Draw(w, c)
}

// figure10Years are those at which cost efficiency is shown. The paper's text has numbers for five years.
var figure10Years = []float64{0.5, 1, 2, 3, 4, 5}

// dollarRow is a line of Figure 10.
type dollarRow struct {
	Application string  `json:"application"`
	Cluster     string  `json:"cluster"`
	Years       float64 `json:"years"`
	Requests    float64 `json:"million_requests_per_dollar"`
	Relative    float64 `json:"relative_to_2xType2_SmartNIC"`
}

func (p *clusterPaper) figure10(cmd *cobra.Command, o *options) error {
	all, err := cluster.Default().Table5(cmd.Context())
	if err != nil {
		return err
	}
	var rows []dollarRow
	var cells [][]string
	for _, reference := range all {
		if reference.Cluster != "2xType2-SmartNIC" {
			continue
		}
		for _, e := range all {
			if e.Application != reference.Application {
				continue
			}
			for _, years := range figure10Years {
				per := e.PerDollar(years)
				r := dollarRow{e.Application, e.Cluster, years, per / 1e6, per / reference.PerDollar(years)}
				rows = append(rows, r)
				cells = append(cells, []string{r.Application, r.Cluster, strconv.FormatFloat(years, 'g', -1, 64), whole(r.Requests), twoDigits(r.Relative)})
			}
		}
	}
	head := []column{
		{"APPLICATION", "application"}, {"CLUSTER", "cluster"}, {"YEARS", "years"}, {"MILLION REQUESTS/$", "million_requests_per_dollar"},
		{"OF 2xType2'S", "relative_to_2xType2_SmartNIC"},
	}
	return p.out.write(cmd, o, rows, head, cells, func(w io.Writer) error { return drawFigure10(w, rows) })
}

func drawFigure10(w io.Writer, rows []dollarRow) error {
	var charts []chart.Chart
	for from := 0; from < len(rows); from += len(figure10Years) {
		r := &rows[from]
		if len(charts) == 0 || charts[len(charts)-1].Title != r.Application {
			charts = append(charts, chart.Chart{Title: r.Application, X: chart.Axis{Label: "years of ownership"}, Y: chart.Axis{Label: "million requests per dollar"}})
		}
		line := chart.Line{Name: r.Cluster}
		for _, r := range rows[from:][:len(figure10Years)] {
			line.Points = append(line.Points, chart.Point{X: r.Years, Y: r.Requests})
		}
		c := &charts[len(charts)-1]
		c.Lines = append(c.Lines, line)
	}
	return chart.Draw(w, charts...)
}

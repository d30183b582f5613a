package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// comparisonRow is a line of Figure 6.
type comparisonRow struct {
	Application string  `json:"application"`
	Policy      string  `json:"policy"`
	Peak        float64 `json:"peak_requests_per_second"`
	Hops        float64 `json:"hops"`
	WallKRPJ    float64 `json:"wall_krpj"`
	Mean        float64 `json:"mean_us"`
	P99         float64 `json:"p99_us"`
	// What the first policy has more of energy efficiency, and less of mean latency, than this one, in %.
	Gain  float64 `json:"first_policy_krpj_more_percent"`
	Saved float64 `json:"first_policy_mean_less_percent"`
}

func (p *clusterPaper) figure6(cmd *cobra.Command, o *options) error {
	if err := checkFill(p.fill); err != nil {
		return err
	}
	rows, err := p.compare(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			r.Application, r.Policy, whole(r.Peak), twoDigits(r.Hops), threeDigits(r.WallKRPJ), twoDigits(r.Mean), twoDigits(r.P99), twoDigits(r.Gain), twoDigits(r.Saved),
		})
	}
	first := strings.ToUpper(rows[0].Policy)
	head := []column{
		{"APPLICATION", "application"}, {"POLICY", "policy"}, {"PEAK/S", "peak_requests_per_second"}, {"HOPS", "hops"}, {"WALL KRPJ", "wall_krpj"},
		{"MEAN µs", "mean_us"}, {"P99 µs", "p99_us"}, {first + " KRPJ +%", "first_policy_krpj_more_percent"}, {first + " MEAN -%", "first_policy_mean_less_percent"},
	}
	return p.out.write(cmd, o, rows, head, cells, func(w io.Writer) error { return drawFigure6(w, rows) })
}

func (p *clusterPaper) compare(ctx context.Context, cmd *cobra.Command) (rows []comparisonRow, err error) {
	policies := p.scale.policies
	if !cmd.Flags().Changed("policy") {
		policies = []string{string(cluster.HCM), string(cluster.Spread), string(cluster.Annealing)}
	}
	progress, end := watch(cmd, "runs")
	defer end()
	f := cluster.Figure6{Shards: p.shards, Requests: p.requests, Seed: p.scale.seed, Progress: progress}
	for _, name := range policies {
		policy, err := cluster.ParsePolicy(name)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		f.Policies = append(f.Policies, cluster.How{Policy: policy, Seed: p.scale.seed, Timeout: p.scale.timeout, Fill: p.fill})
	}
	if f.Policies == nil {
		return nil, errors.New("there is nothing to compare: give at least one --policy")
	}
	all, err := cluster.Default().Figure6(ctx, f)
	if err != nil {
		return nil, err
	}
	var first comparisonRow
	for i := range all {
		c := &all[i]
		r := comparisonRow{
			Application: c.Application, Policy: string(c.Policy), Peak: c.Peak, Hops: c.Hops, WallKRPJ: c.WallKRPJ(), Mean: c.Latency.Mean() / 1000,
			P99: float64(c.Latency.ValueAtQuantile(99)) / 1000,
		}
		if i%len(f.Policies) == 0 {
			first = r
		}
		r.Gain, r.Saved = 100*(first.WallKRPJ/r.WallKRPJ-1), 100*(1-first.Mean/r.Mean)
		rows = append(rows, r)
	}
	return rows, nil
}

// drawFigure6 draws what of energy efficiency and of latency the policies have, relative to the first.
func drawFigure6(w io.Writer, rows []comparisonRow) error {
	energy := chart.Chart{Title: "Energy efficiency, of wall power", Y: chart.Axis{Label: "of the first policy's (%)", Max: 180}}
	latency := chart.Chart{Title: "Mean latency", Y: chart.Axis{Label: "of the first policy's (%)", Max: 180}}
	at := make(map[string]int)
	for _, r := range rows {
		i, ok := at[r.Policy]
		if !ok {
			i = len(at)
			at[r.Policy] = i
			energy.Lines, latency.Lines = append(energy.Lines, chart.Line{Name: r.Policy}), append(latency.Lines, chart.Line{Name: r.Policy})
		}
		e, l := &energy.Lines[i].Points, &latency.Lines[i].Points
		x := float64(len(*e))
		if i == 0 {
			energy.X.Ticks = append(energy.X.Ticks, chart.Tick{Value: x, Label: strings.ReplaceAll(r.Application, "-", "-\n")})
		}
		*e = append(*e, chart.Point{X: x, Y: 100 / (1 + r.Gain/100)})
		*l = append(*l, chart.Point{X: x, Y: 100 / (1 - r.Saved/100)})
	}
	latency.X.Ticks = energy.X.Ticks
	return chart.Draw(w, energy, latency)
}

package heartbeats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lambdanic/lambdanic/internal/chart"
)

// Sweep runs fleets one after the other, as each is to have the machine's caches for itself. Progress, where set, is told after each how many
// of all are done. All fleets are checked before the first runs.
func Sweep(ctx context.Context, fleets []Fleet, progress func(done, all int)) ([]*Outcome, error) {
	if len(fleets) == 0 {
		return nil, errors.New("there is no fleet to simulate: take at least one")
	}
	for i := range fleets {
		if err := fleets[i].check(); err != nil {
			return nil, err
		}
	}
	var outcomes []*Outcome
	for i, f := range fleets {
		o, err := f.Run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%d servers, %d lambdas a NIC: %w", f.Servers, f.Lambdas, err)
		}
		outcomes = append(outcomes, o)
		if progress != nil {
			progress(i+1, len(fleets))
		}
	}
	return outcomes, nil
}

// Draw draws what a decision takes over the number of servers (Figure 11), and what the heartbeats of all NICs at once take, as SVG, with a line
// for each number of lambdas.
func Draw(w io.Writer, outcomes []*Outcome) error {
	servers := chart.Axis{Label: "servers", Log: true}
	decision := chart.Chart{Title: "Decision: median (solid), 99th percentile", X: servers, Y: chart.Axis{Label: "time (µs)", Log: true}}
	burst := chart.Chart{Title: "Heartbeats of all NICs at once", X: servers, Y: chart.Axis{Label: "time (ms)", Log: true}}
	var lambdas []int
	for _, o := range outcomes {
		if !slices.Contains(lambdas, o.Lambdas) {
			lambdas = append(lambdas, o.Lambdas)
		}
	}
	for at, l := range lambdas {
		name := fmt.Sprintf("%d lambdas a NIC", l)
		median, tail := chart.Line{Name: name, Like: 1 + at}, chart.Line{Like: 1 + at, Dashed: true}
		all := chart.Line{Name: name, Like: 1 + at}
		for _, o := range outcomes {
			if o.Lambdas != l {
				continue
			}
			x := float64(o.Servers)
			all.Points = append(all.Points, chart.Point{X: x, Y: o.Burst().Seconds() * 1e3})
			burst.Y.Max = max(burst.Y.Max, 20*o.Burst().Seconds()*1e3) // room for the legend
			if o.Decision.TotalCount() > 0 {
				p99 := float64(o.Decision.ValueAtQuantile(99)) / 1e3
				median.Points = append(median.Points, chart.Point{X: x, Y: float64(o.Decision.ValueAtQuantile(50)) / 1e3})
				tail.Points = append(tail.Points, chart.Point{X: x, Y: p99})
				decision.Y.Max = max(decision.Y.Max, 20*p99)
			}
		}
		burst.Lines = append(burst.Lines, all)
		if len(median.Points) > 0 {
			decision.Lines = append(decision.Lines, median, tail)
		}
	}
	if len(decision.Lines) == 0 {
		return errors.New("no decision was timed: take more servers, a larger share of overloaded NICs, or more intervals")
	}
	return chart.Draw(w, decision, burst)
}

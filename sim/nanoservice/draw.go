package nanoservice

import (
	"fmt"
	"io"
	"slices"

	"github.com/lambdanic/lambdanic/internal/chart"
)

// Draw draws outcomes as SVG: how many runs took at most how long (Figure 5 of the paper) if all trees are of one depth, and else the median
// and the 99th percentile over the depth (Figure 6).
func Draw(w io.Writer, outcomes []Outcome) error {
	for i := range outcomes {
		if outcomes[i].Depth != outcomes[0].Depth {
			return chart.Draw(w, byDepth(outcomes))
		}
	}
	if len(outcomes[0].Finish) == 1 {
		return chart.Draw(w, utilisations(outcomes))
	}
	return chart.Draw(w, distributions(outcomes))
}

// utilisations are those of single runs, of which there is no distribution: a bar for each.
func utilisations(outcomes []Outcome) chart.Chart {
	c := chart.Chart{Title: "How busy the hosts' cores are", X: chart.Axis{Max: float64(len(outcomes) + 1)}, Y: chart.Axis{Label: "utilisation (%)", Max: 160}}
	for i := range outcomes {
		at, busy := float64(i+1), 100*outcomes[i].Utilisation
		c.X.Ticks = append(c.X.Ticks, chart.Tick{Value: at})
		c.Lines = append(c.Lines, chart.Line{Name: fmt.Sprintf("%s: %.1f %%", outcomes[i].Name, busy), Points: []chart.Point{{X: at}, {X: at, Y: busy}}})
	}
	c.Y.Ticks = percents()
	return c
}

func percents() (ticks []chart.Tick) {
	for p := 0; p <= 100; p += 25 {
		ticks = append(ticks, chart.Tick{Value: float64(p), Label: fmt.Sprint(p)})
	}
	return ticks
}

func distributions(outcomes []Outcome) chart.Chart {
	c := chart.Chart{X: chart.Axis{Label: "completion time (µs)"}, Y: chart.Axis{Label: "share of the runs (%)", Max: 140}}
	for i := range outcomes {
		o := &outcomes[i]
		c.Title = fmt.Sprintf("Searches of %d levels on %d hosts", o.Depth, o.Hosts)
		l := chart.Line{Name: fmt.Sprintf("%s, p50 %.1f µs", o.Name, o.Percentile(50).Micros())}
		l.Points = append(l.Points, chart.Point{X: o.Finish[0].Micros()})
		for n, f := range o.Finish {
			l.Points = append(l.Points, chart.Point{X: f.Micros(), Y: 100 * float64(n+1) / float64(len(o.Finish))})
		}
		c.Lines = append(c.Lines, l)
	}
	c.Y.Ticks = percents()
	return c
}

func byDepth(outcomes []Outcome) chart.Chart {
	c := chart.Chart{Title: "Median (solid) and 99th percentile", X: chart.Axis{Label: "depth"}, Y: chart.Axis{Label: "completion time (µs)"}}
	var names []string
	most := 0.0
	for i := range outcomes {
		o := &outcomes[i]
		at := slices.Index(names, o.Name)
		if at < 0 {
			at = len(names)
			names = append(names, o.Name)
			c.Lines = append(c.Lines, chart.Line{Name: o.Name, Like: 1 + at})
		}
		c.Lines[at].Points = append(c.Lines[at].Points, chart.Point{X: float64(o.Depth), Y: o.Percentile(50).Micros()})
		most = max(most, o.Percentile(99).Micros())
	}
	for at, name := range names {
		tail := chart.Line{Dashed: true, Like: 1 + at}
		for i := range outcomes {
			if o := &outcomes[i]; o.Name == name {
				tail.Points = append(tail.Points, chart.Point{X: float64(o.Depth), Y: o.Percentile(99).Micros()})
			}
		}
		c.Lines = append(c.Lines, tail)
	}
	c.Y.Max = 1.4 * most
	return c
}

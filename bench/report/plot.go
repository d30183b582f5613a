package report

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/lambdanic/lambdanic/internal/chart"
)

// Point of a latency distribution: that share of the requests took at most that long.
type Point struct {
	Percent float64
	Micros  float64
}

// Curve is one side's latency distribution, points in rising order.
type Curve struct {
	Name   string
	Points []Point
}

// Panel is one plot: several sides on the same work.
type Panel struct {
	Title  string
	Curves []Curve
}

const (
	// topNine is the highest percentile that the axis shows, as nines: 99.99 %. Beyond it single interrupts are drawn.
	topNine = 4
	// legendRoom keeps the curves below the legend.
	legendRoom = 1.28
)

// Latency draws panels side by side as SVG. Latency runs along a logarithmic axis. Percentiles rise by their nines, so that
// half of the picture shows the slowest tenth of the requests, which is where sides differ most.
func Latency(w io.Writer, panels []Panel) error {
	var charts []chart.Chart
	for i, p := range panels {
		c := chart.Chart{
			Title: p.Title,
			X:     chart.Axis{Label: "latency (µs)", Log: true},
			Y:     chart.Axis{Ticks: nineTicks(), Max: topNine * legendRoom},
		}
		if i == 0 {
			c.Y.Label = "requests answered within it"
		}
		for _, curve := range p.Curves {
			c.Lines = append(c.Lines, curve.line())
		}
		charts = append(charts, c)
	}
	return chart.Draw(w, charts...)
}

func (c Curve) line() chart.Line {
	if len(c.Points) == 0 {
		return chart.Line{Name: c.Name}
	}
	l := chart.Line{Name: fmt.Sprintf("%s, median %s µs", c.Name, Number(c.median()))}
	for _, p := range c.Points {
		if p.Micros > 0 && p.Percent < 100 && nines(p.Percent) <= topNine {
			l.Points = append(l.Points, chart.Point{X: p.Micros, Y: nines(p.Percent)})
		}
	}
	return l
}

// median is the latency of the first point at which half of the requests are answered.
func (c Curve) median() float64 {
	for _, p := range c.Points {
		if p.Percent >= 50 {
			return p.Micros
		}
	}
	return math.NaN()
}

// nines counts how many nines a percentage below 100 has: 90 has one, 99.9 three, 50 a third of one.
func nines(percent float64) float64 { return -math.Log10(1 - percent/100) }

func nineTicks() (ticks []chart.Tick) {
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99} {
		ticks = append(ticks, chart.Tick{Value: nines(p), Label: strconv.FormatFloat(p, 'f', -1, 64) + " %"})
	}
	return ticks
}

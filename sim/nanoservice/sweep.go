package nanoservice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lambdanic/lambdanic/internal/chart"
)

// Sweep runs loads, each once.
type Sweep struct {
	Loads []LoadCase
	Seed  uint64 // of all: those that differ in dispatch alone have the same requests
	// Progress, where set, is told after each run how many of all are done. Several goroutines call it.
	Progress func(done, all int)
}

// LoadCase is a load under a name.
type LoadCase struct {
	Name string
	Load
}

// Served is what became of a load.
type Served struct {
	LoadCase
	Service
}

// Run runs them on all CPUs. What comes out does not depend on how many these are.
func (s *Sweep) Run(ctx context.Context) ([]Served, error) {
	if len(s.Loads) == 0 {
		return nil, errors.New("there is no load to simulate: take at least one")
	}
	for _, c := range s.Loads {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	served := make([]Served, len(s.Loads))
	err := each(ctx, len(served), s.Progress, func(ctx context.Context, i int) (err error) {
		c := s.Loads[i]
		served[i].LoadCase = c
		if served[i].Service, err = c.Load.Run(ctx, s.Seed); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		return nil
	})
	return served, err
}

// DrawLoads draws the median and the 99th percentile of the latency over the load as SVG, for each name.
func DrawLoads(w io.Writer, all []Served) error {
	c := chart.Chart{
		Title: "Median (dashed) and 99th percentile", X: chart.Axis{Label: "utilisation of the cores (%)"}, Y: chart.Axis{Label: "latency (µs)", Log: true},
	}
	var names []string
	highest := 0.0
	for i := range all {
		if name := all[i].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
		highest = max(highest, float64(all[i].Latency.ValueAtQuantile(99))/1000)
	}
	for at, name := range names {
		tail, median := chart.Line{Name: name, Like: 1 + at}, chart.Line{Like: 1 + at, Dashed: true}
		for i := range all {
			if s := &all[i]; s.Name == name {
				x := 100 * s.Service.Utilisation
				tail.Points = append(tail.Points, chart.Point{X: x, Y: float64(s.Latency.ValueAtQuantile(99)) / 1000})
				median.Points = append(median.Points, chart.Point{X: x, Y: float64(s.Latency.ValueAtQuantile(50)) / 1000})
			}
		}
		c.Lines = append(c.Lines, tail, median)
	}
	c.Y.Max = 10 * highest // room for the legend
	return chart.Draw(w, c)
}

package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

// What is drawn is XML with all words, and a path for each line.
func TestDraw(t *testing.T) {
	var b bytes.Buffer
	line := Line{Name: "measured", Points: []Point{{1, 10}, {2, 100}}}
	err := Draw(&b,
		Chart{Title: "left", X: Axis{Label: "depth"}, Y: Axis{Label: "time (µs)", Log: true}, Lines: []Line{line, {Name: "p99", Points: line.Points, Dashed: true, Like: 1}}},
		Chart{Title: "right", Y: Axis{Ticks: []Tick{{50, "half"}}, Max: 120}, Lines: []Line{line}},
		Chart{Title: "one point", Lines: []Line{{Points: []Point{{0, 0}}}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"left", "right", "depth", "time (µs)", "measured", "p99", "half", "stroke-dasharray"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the chart lacks %q", want)
		}
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Every axis has a few labels, which are round numbers and no longer than they have to be.
func TestTicks(t *testing.T) {
	for _, c := range []struct {
		marks     plot.Ticker
		low, high float64
		want      string
	}{
		{evenly{}, 0, 26370, "0 5000 10000 15000 20000 25000"},
		{evenly{}, 0, 977.7, "0 200 400 600 800"},
		{evenly{}, 0, 100, "0 20 40 60 80 100"},
		{evenly{}, 0, 4, "0 1 2 3 4"},
		{evenly{}, -1, 3, "-1 0 1 2 3"},
		{evenly{}, 0, 0.3, "0.00 0.05 0.10 0.15 0.20 0.25 0.30"},
		{evenly{}, 0, 2.5e-5, "0.000000 0.000005 0.000010 0.000015 0.000020 0.000025"},
		{evenly{}, 7, 7, ""},
		{decades{}, 150, 350, "200 300"},
		{decades{}, 0.15, 0.95, "0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9"},
		{decades{}, 0.8, 60, "1 2 5 10 20 50"},
		{decades{}, 1, 5000, "1 10 100 1000"},
	} {
		var labels []string
		for _, tick := range c.marks.Ticks(c.low, c.high) {
			if tick.Label != "" {
				labels = append(labels, tick.Label)
			}
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%T from %v to %v has %s, want %s", c.marks, c.low, c.high, got, c.want)
		}
	}
}

func TestBadCharts(t *testing.T) {
	for name, c := range map[string][]Chart{
		"none":            nil,
		"no lines":        {{}},
		"no points":       {{Lines: []Line{{}}}},
		"zero on a log":   {{X: Axis{Log: true}, Lines: []Line{{Points: []Point{{0, 1}}}}}},
		"second is empty": {{Lines: []Line{{Points: []Point{{1, 1}}}}}, {}},
	} {
		if err := Draw(io.Discard, c...); err == nil {
			t.Errorf("%s: it was drawn", name)
		}
	}
}

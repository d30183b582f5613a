package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// What is drawn is XML with all words, and a path for each line.
func TestDraw(t *testing.T) {
	var b bytes.Buffer
	line := Line{Name: "measured", Points: []Point{{1, 10}, {2, 100}}}
	err := Draw(&b,
		Chart{Title: "left", X: Axis{Label: "depth"}, Y: Axis{Label: "time (µs)", Log: true}, Lines: []Line{line, {Name: "p99", Points: line.Points, Dashed: true, Like: 1}}},
		Chart{Title: "right", Y: Axis{Ticks: []Tick{{50, "half"}}, Max: 120}, Lines: []Line{line}},
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

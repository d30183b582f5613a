package report

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Point of a latency distribution: this share of the requests took at most this long.
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

// Colours that the colour-blind tell apart (Okabe and Ito, "Color Universal Design", 2008), ours first.
var palette = []color.Color{
	color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, color.RGBA{G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
}

var (
	ink  = color.Gray{Y: 0x33}
	pale = color.Gray{Y: 0xe4}
)

const (
	panelWidth  = 4.2 * vg.Inch
	panelHeight = 3.8 * vg.Inch
	margin      = 12
	// topNine is the highest percentile that the axis shows, as nines: 99.99 %. Beyond it single interrupts are drawn.
	topNine = 4
	// legendRoom keeps the curves below the legend.
	legendRoom = 1.28
)

// Latency draws panels side by side as SVG. Latency runs along a logarithmic axis. Percentiles rise by their nines, so that
// half of the picture shows the slowest tenth of the requests, which is where sides differ most.
func Latency(w io.Writer, panels []Panel) error {
	if len(panels) == 0 {
		return fmt.Errorf("nothing to plot: give at least one panel")
	}
	var plots []*plot.Plot
	for i, p := range panels {
		one, err := latencyPlot(p, i == 0)
		if err != nil {
			return fmt.Errorf("plot %s: %w", p.Title, err)
		}
		plots = append(plots, one)
	}
	width := panelWidth*vg.Length(len(panels)) + 2*margin
	svg := vgsvg.NewWith(vgsvg.UseWH(width, panelHeight+2*margin))
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	tiles := draw.Tiles{
		Rows: 1, Cols: len(panels), PadX: 18, PadLeft: margin, PadRight: margin, PadTop: margin, PadBottom: margin,
	}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, canvas)[0] {
		plots[i].Draw(c)
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	// Readers without that font would get one with serifs.
	out := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write the plot: %w", err)
	}
	return nil
}

func latencyPlot(p Panel, first bool) (*plot.Plot, error) {
	pl := plot.New()
	pl.Title.Text = p.Title
	pl.Title.TextStyle.Font = font.From(sans, 13)
	pl.Title.Padding = 8
	pl.X.Label.Text = "latency (µs)"
	if first {
		pl.Y.Label.Text = "requests answered within it"
	}
	for _, a := range []*plot.Axis{&pl.X, &pl.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = font.From(sans, 10), font.From(sans, 9)
		a.Label.TextStyle.Color, a.Tick.Label.Color = ink, ink
		a.LineStyle.Color, a.Tick.LineStyle.Color = ink, ink
		a.Padding = 0
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = pale, pale
	pl.Add(grid)
	low, high := math.Inf(1), 0.0
	for i, c := range p.Curves {
		line, err := curveLine(c)
		if err != nil {
			return nil, err
		}
		line.Color = palette[i%len(palette)]
		pl.Add(line)
		pl.Legend.Add(fmt.Sprintf(" %s, median %s µs", c.Name, Number(c.median())), line)
		for _, xy := range line.XYs {
			low, high = min(low, xy.X), max(high, xy.X)
		}
	}
	if high == 0 {
		return nil, fmt.Errorf("no curve has a point")
	}
	pl.X.Scale, pl.X.Tick.Marker = plot.LogScale{}, decades{}
	pl.X.Min, pl.X.Max = low/1.3, high*1.3
	pl.Y.Min, pl.Y.Max, pl.Y.Tick.Marker = 0, topNine*legendRoom, nineTicks()
	styleLegend(&pl.Legend)
	return pl, nil
}

var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

func styleLegend(l *plot.Legend) {
	l.TextStyle.Font, l.TextStyle.Color = font.From(sans, 10), ink
	l.Top, l.Left = true, true // curves rise from the lower left to the upper right
	l.XOffs, l.YOffs, l.Padding = 8, -4, 3
	l.ThumbnailWidth = 18
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

func curveLine(c Curve) (*plotter.Line, error) {
	var xys plotter.XYs
	for _, p := range c.Points {
		if p.Micros > 0 && p.Percent < 100 && nines(p.Percent) <= topNine {
			xys = append(xys, plotter.XY{X: p.Micros, Y: nines(p.Percent)})
		}
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return nil, fmt.Errorf("curve %s: %w", c.Name, err)
	}
	line.Width = 1.8
	return line, nil
}

// nines counts how many nines a percentage below 100 has: 90 has one, 99.9 three, 50 a third of one.
func nines(percent float64) float64 { return -math.Log10(1 - percent/100) }

func nineTicks() plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99} {
		ticks = append(ticks, plot.Tick{Value: nines(p), Label: strconv.FormatFloat(p, 'f', -1, 64) + " %"})
	}
	return ticks
}

// decades marks 1, 2 and 5 of each power of ten, and the others without a label.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	wide := math.Log10(high/low) > 2 // then only 1 of each power of ten has a label
	for base := math.Pow(10, math.Floor(math.Log10(low))); base <= high; base *= 10 {
		for i := 1.0; i < 10; i++ {
			v := base * i
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if i == 1 || !wide && (i == 2 || i == 5) {
				t.Label = strconv.FormatFloat(v, 'f', -1, 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

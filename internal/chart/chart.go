// Package chart draws line charts as SVG, in the style of the documentation.
package chart

import (
	"bytes"
	"errors"
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

// Chart is one of several that stand side by side.
type Chart struct {
	Title string
	X, Y  Axis
	Lines []Line // each with at least one point
}

// Axis has a range that takes in all points, where it does not say more.
type Axis struct {
	Label string
	Log   bool   // then all values have to be positive
	Ticks []Tick // chosen by the values where there are none
	Max   float64
}

// Tick is a mark on an axis.
type Tick struct {
	Value float64
	Label string
}

// Line joins its points in their order.
type Line struct {
	Name   string // "" leaves it out of the legend
	Points []Point
	Dashed bool
	Like   int // 1 + the number of the line whose colour it has; 0: a colour of its own
}

// Point is in the units of the axes.
type Point struct{ X, Y float64 }

// Colours that the colour-blind tell apart (Okabe and Ito, "Color Universal Design", 2008).
var palette = []color.Color{
	color.RGBA{R: 0xd5, G: 0x5e, A: 0xff}, color.RGBA{G: 0x72, B: 0xb2, A: 0xff},
	color.RGBA{G: 0x9e, B: 0x73, A: 0xff}, color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff},
	color.RGBA{R: 0xe6, G: 0x9f, A: 0xff}, color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
}

var (
	ink  = color.Gray{Y: 0x33}
	pale = color.Gray{Y: 0xe4}
	sans = font.Font{Typeface: "Liberation", Variant: "Sans"}
)

const (
	width  = 4.2 * vg.Inch
	height = 3.8 * vg.Inch
	margin = 12
)

// Draw writes charts side by side as one SVG.
func Draw(w io.Writer, charts ...Chart) error {
	if len(charts) == 0 {
		return errors.New("nothing to draw: give at least one chart")
	}
	var plots []*plot.Plot
	for _, c := range charts {
		p, err := c.plot()
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Title, err)
		}
		plots = append(plots, p)
	}
	svg := vgsvg.NewWith(vgsvg.UseWH(width*vg.Length(len(charts))+2*margin, height+2*margin))
	canvas := draw.New(svg)
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	tiles := draw.Tiles{
		Rows: 1, Cols: len(charts), PadX: 18, PadLeft: margin, PadRight: margin, PadTop: margin, PadBottom: margin,
	}
	for i, c := range plot.Align([][]*plot.Plot{plots}, tiles, canvas)[0] {
		plots[i].Draw(c)
	}
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	// Readers without that font would get one with serifs.
	out := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

func (c *Chart) plot() (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.Title.Padding = c.Title, 8
	p.Title.TextStyle.Font = font.From(sans, 13)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = pale, pale
	p.Add(grid)
	for i, l := range c.Lines {
		line, err := l.line(c.X.Log, c.Y.Log)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		if l.Like > 0 {
			i = l.Like - 1
		}
		line.Color = palette[i%len(palette)]
		p.Add(line)
		if l.Name != "" {
			p.Legend.Add(" "+l.Name, line)
		}
	}
	if len(c.Lines) == 0 {
		return nil, errors.New("it has no lines")
	}
	c.X.style(&p.X)
	c.Y.style(&p.Y)
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = font.From(sans, 10), ink
	p.Legend.Top, p.Legend.Left = true, true // most curves rise from the lower left to the upper right
	p.Legend.XOffs, p.Legend.YOffs, p.Legend.Padding = 8, -4, 3
	p.Legend.ThumbnailWidth = 18
	return p, nil
}

func (l *Line) line(logX, logY bool) (*plotter.Line, error) {
	if len(l.Points) == 0 {
		return nil, errors.New("it has no points")
	}
	var xys plotter.XYs
	for _, p := range l.Points {
		if logX && p.X <= 0 || logY && p.Y <= 0 {
			return nil, fmt.Errorf("the point %v is not positive, and its axis is logarithmic", p)
		}
		xys = append(xys, plotter.XY{X: p.X, Y: p.Y})
	}
	line, err := plotter.NewLine(xys)
	if err != nil {
		return nil, err
	}
	line.Width = 1.8
	if l.Dashed {
		line.Dashes = []vg.Length{4, 3}
	}
	return line, nil
}

func (a *Axis) style(p *plot.Axis) {
	p.Label.Text = a.Label
	p.Label.TextStyle.Font, p.Tick.Label.Font = font.From(sans, 10), font.From(sans, 9)
	p.Label.TextStyle.Color, p.Tick.Label.Color = ink, ink
	p.LineStyle.Color, p.Tick.LineStyle.Color = ink, ink
	p.Padding = 0
	if a.Log {
		p.Scale, p.Tick.Marker = plot.LogScale{}, decades{}
		p.Min, p.Max = p.Min/1.3, p.Max*1.3
	} else {
		p.Tick.Marker = evenly{}
		p.Min = min(p.Min, 0)
	}
	if a.Max > 0 {
		p.Max = a.Max
	}
	if a.Ticks != nil {
		var ticks plot.ConstantTicks
		for _, t := range a.Ticks {
			ticks = append(ticks, plot.Tick(t))
		}
		p.Tick.Marker = ticks
	}
}

// evenly marks the multiples of 1, 2 or 5 times a power of ten, at most seven of them. gonum's own ticks are few, with labels such as 25000.00.
type evenly struct{}

// Ticks implements plot.Ticker.
func (evenly) Ticks(low, high float64) (ticks []plot.Tick) {
	least := (high - low) / 6
	power := math.Floor(math.Log10(least))
	const rounding = 1e-9 // of a step
	step := math.Pow(10, power+1)
	for _, times := range []float64{5, 2, 1} {
		if s := times * math.Pow(10, power); s >= least {
			step = s
		}
	}
	if step == 0 {
		return nil // as of a range that is empty
	}
	digits := int(max(0, math.Ceil(-math.Log10(step)-rounding)))
	for i := int(math.Ceil(low/step - rounding)); float64(i)*step <= high+step*rounding; i++ {
		v := float64(i) * step
		ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'f', digits, 64)})
	}
	return ticks
}

// decades marks the multiples of each power of ten, and labels those that have room for it.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	wide := math.Log10(high / low)
	for power := math.Floor(math.Log10(low)); math.Pow(10, power) <= high; power++ {
		for i := 1.0; i < 10; i++ {
			v := math.Pow(10, power) * i
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if i == 1 || wide <= 2 && (i == 2 || i == 5) || wide <= 1 {
				t.Label = strconv.FormatFloat(v, 'f', int(max(0, -power)), 64)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

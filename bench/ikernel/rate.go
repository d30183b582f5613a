package ikernel

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/internal/chart"
)

// A load is how a side sustains the highest rate: the CPUs that generate, and that rate.
type load struct {
	cpus []int
	rate float64
}

// curve finds the highest rate that a side sustains from these CPUs, near a known one if that is not 0.
func (b *bench) curve(ctx context.Context, s *side, cpus []int, known float64) (gen.Curve, error) {
	return gen.Refine(ctx, func(ctx context.Context, rate float64) (gen.Result, error) {
		return s.offer(ctx, gen.Load{Rate: rate, CPUs: cpus, Duration: b.Run})
	}, known)
}

// best finds the CPUs from which a side sustains the highest rate.
func (b *bench) best(ctx context.Context, s *side) (best load, err error) {
	for _, cpus := range measure.GeneratorCPUs() {
		c, err := b.curve(ctx, s, cpus, 0)
		if err != nil {
			return best, err
		}
		if c.Open.Rate() > best.rate {
			best = load{cpus, c.Open.Rate()}
		}
	}
	if best.rate == 0 {
		return best, fmt.Errorf("no rate is found at which at most %g %% are lost: is the machine busy?", 100*gen.MaxLoss)
	}
	return best, nil
}

// gets is how many GETs were answered per second.
func gets(r gen.Result) float64 { return float64(r.Delivered-r.Stored) / r.Elapsed.Seconds() }

// hits measures GETs of which all are hits.
func (b *bench) hits(ctx context.Context) error {
	var best highest
	var curves []chart.Line
	for _, threads := range b.Threads {
		rates := map[string]report.Samples{}
		err := b.withSite(ctx, threads, b.Hot, func(s sites) error {
			lines, err := b.hitsOf(ctx, s, fmt.Sprintf("hits, %d threads", threads), rates)
			curves = append(curves, lines...)
			return err
		})
		if err != nil {
			return err
		}
		b.compare(fmt.Sprintf("hits.rate_t%d", threads), "1/s", report.Higher, sourceRate, rates)
		best.take(rates)
	}
	b.compare("hits.rate_best", "1/s", report.Higher, sourceRate, best)
	return b.Plot("memcached-hits.svg", func(w io.Writer) error { return drawRates(w, curves) })
}

// hitsOf samples the highest rates of one memcached, and sweeps the loads for the plot.
func (b *bench) hitsOf(ctx context.Context, s sites, what string, rates map[string]report.Samples) (lines []chart.Line, err error) {
	t, loads := b.hot(), map[string]load{}
	for i, name := range []string{cached, alone} {
		if err := b.with(ctx, s, name, t, func(d *side) (err error) {
			if loads[name], err = b.best(ctx, d); err != nil {
				return err
			}
			l, err := b.sweep(ctx, d, loads[name])
			l.Name, l.Like = name, i+1
			lines = append(lines, l)
			return err
		}); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", what, name, err)
		}
	}
	return lines, b.rounds(what, func(name string) error {
		return b.with(ctx, s, name, t, func(d *side) error {
			c, err := b.curve(ctx, d, loads[name].cpus, loads[name].rate)
			rates[name] = append(rates[name], gets(c.Open.Result))
			return err
		})
	})
}

// sweep offers loads from a sixteenth of what a side sustains to four times as much.
func (b *bench) sweep(ctx context.Context, s *side, most load) (line chart.Line, err error) {
	for _, share := range []float64{1. / 16, 1. / 8, 1. / 4, 1. / 2, 3. / 4, 1, 5. / 4, 3. / 2, 2, 4} {
		r, err := s.offer(ctx, gen.Load{Rate: share * most.rate, CPUs: most.cpus, Duration: b.Run})
		if err != nil {
			return line, err
		}
		if r.Sent > 0 && r.Delivered > 0 {
			line.Points = append(line.Points, chart.Point{X: r.OfferedRate() / 1e3, Y: r.Rate() / 1e3})
		}
	}
	slices.SortFunc(line.Points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	return line, nil
}

// drawRates draws a line of each side for each number of threads.
func drawRates(w io.Writer, lines []chart.Line) error {
	for i := 2; i < len(lines); i++ {
		lines[i].Name = "" // the legend has each side once
	}
	return chart.Draw(w, chart.Chart{
		Title: "GETs that are hits", Lines: lines,
		X: chart.Axis{Label: "offered (1,000/s)", Log: true}, Y: chart.Axis{Label: "answered (1,000/s)", Log: true},
	})
}

// zipf measures GETs and SETs by Zipf's law, for more keys than the cache has memory for.
func (b *bench) zipf(ctx context.Context) error {
	mixes := []*mix{b.mixOf("0.2%", 0.002), b.mixOf("10%", 0.1)}
	for _, threads := range b.Threads {
		err := b.withSite(ctx, threads, b.Keys, func(s sites) error {
			for _, m := range mixes {
				rates, err := b.sample(ctx, s, m, fmt.Sprintf("t%d", threads))
				if err != nil {
					return err
				}
				m.highest.take(rates)
				m.draw(threads, rates)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, m := range mixes {
		b.compare(m.name+".rate_best", "GETs/s", report.Higher, sourceRate, m.highest)
	}
	return b.Plot("memcached-zipf.svg", func(w io.Writer) error { return drawMixes(w, mixes) })
}

// draw adds the rates of a memcached with so many threads to the plot.
func (m *mix) draw(threads int, rates map[string]report.Samples) {
	for i := range m.lines {
		l := &m.lines[i]
		l.Points = append(l.Points, chart.Point{X: float64(threads), Y: rates[l.Name].Median() / 1e3})
	}
}

// drawMixes draws each mix apart: what each side gets from how many threads.
func drawMixes(w io.Writer, mixes []*mix) error {
	var charts []chart.Chart
	for _, m := range mixes {
		charts = append(charts, chart.Chart{
			Title: m.title, Lines: m.lines, X: chart.Axis{Label: "threads of memcached"}, Y: chart.Axis{Label: "GETs answered (1,000/s)", Log: true},
		})
	}
	return chart.Draw(w, charts...)
}

// A mix is a trace of GETs and SETs, and the rates of the number of threads that serves each side best.
type mix struct {
	name    string
	trace   trace
	highest highest

	title string // of its plot
	lines []chart.Line
}

// mixOf is the mix by Zipf's law with a share of SETs.
func (b *bench) mixOf(percent string, sets float64) *mix {
	return &mix{
		name: "zipf_sets_" + percent, trace: b.skewed(sets),
		title: fmt.Sprintf("Zipf's law (0.99), %s SETs", percent), lines: []chart.Line{{Name: cached}, {Name: alone}},
	}
}

// sample samples the highest rates of a mix. Its results' names end in what the sites are.
func (b *bench) sample(ctx context.Context, s sites, m *mix, what string) (rates map[string]report.Samples, err error) {
	loads := map[string]load{}
	rates = map[string]report.Samples{}
	var hits, bound, even report.Samples
	err = b.rounds(m.name+", "+what, func(name string) error {
		return b.with(ctx, s, name, m.trace, func(d *side) (err error) {
			if loads[name].rate == 0 {
				if loads[name], err = b.best(ctx, d); err != nil {
					return err
				}
			}
			c, err := b.curve(ctx, d, loads[name].cpus, loads[name].rate)
			if err != nil {
				return err
			}
			r := c.Open.Result
			rates[name] = append(rates[name], gets(r))
			if name == cached && r.Delivered > r.Stored {
				share := float64(r.Cached) / float64(r.Delivered-r.Stored)
				hits, bound, even = append(hits, 100*share), append(bound, 1/(1-share)), append(even, evenness(r))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	b.compare(fmt.Sprintf("%s.rate_%s", m.name, what), "GETs/s", report.Higher, sourceRate, rates)
	b.add(report.Compare(fmt.Sprintf("%s.hits_%s", m.name, what), "%", report.Higher, sourceRate, hits, nil))
	b.add(report.Compare(fmt.Sprintf("%s.bound_%s", m.name, what), "times", report.Higher, "1 / share of misses", bound, nil))
	if len(s) > 1 {
		b.add(report.Compare(fmt.Sprintf("%s.least_%s", m.name, what), "% of an equal share", report.Higher, sourceRate, even, nil))
	}
	return rates, nil
}

// highest are the samples of each side's best number of threads.
type highest map[string]report.Samples

func (h *highest) take(rates map[string]report.Samples) {
	if *h == nil {
		*h = highest{}
	}
	for name, samples := range rates {
		if samples.Median() > (*h)[name].Median() {
			(*h)[name] = samples
		}
	}
}

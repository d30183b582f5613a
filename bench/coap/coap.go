// Package coap measures coap-jwt: a CoAP server for Node.js alone, and the same process with the guard, while forged requests come; and guards that share a CPU.
package coap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/internal/chart"
)

// The sides.
const (
	alone   = "alone"
	guarded = "with the guard"
)

// Where figures come from.
const (
	sourceCapacity = "16 clients, each with one request in flight: right answers per second"
	sourceAnswered = "valid requests at 80 % of what the server answers alone, sent on time whether answered or not; those answered rightly"
	sourceForged   = "forged requests that the generator sent: the load, not a figure of the server"
)

// Benchmarks are the parts of the suite.
var Benchmarks = []string{"forged", "shares"}

// share is how much of its capacity the server is asked for by valid requests.
const share = 0.8

// Size says how much is measured.
type Size struct {
	Forged []int         // requests, as multiples of the server's capacity
	Run    time.Duration // of one load
	Cycles int           // of the phases of shares, in a round
	Phase  int           // samples of such a phase, of 10 ms
}

// Full is what the benchmark measures.
var Full = Size{Forged: []int{0, 1, 3, 10}, Run: 3 * time.Second, Cycles: 4, Phase: 50}

// A bench is one run of the suite.
type bench struct {
	measure.Options
	Size
	pair    *link.Pair
	site    *site // of forged
	results []report.Result
}

// Run measures behind a pair.
func Run(ctx context.Context, p *link.Pair, o measure.Options, size Size) ([]report.Result, error) {
	b := &bench{Options: o, Size: size, pair: p}
	for i, run := range []func(context.Context) error{b.forged, b.shares} {
		if name := Benchmarks[i]; o.Benchmark == "" || o.Benchmark == name {
			if err := run(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return b.results, nil
}

// forged compares the server with the guard against the server alone.
func (b *bench) forged(ctx context.Context) (err error) {
	if b.site, err = newSite(b.pair, b.Options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.site.stop()) }()
	capacity, err := b.capacity(ctx)
	if err != nil {
		return err
	}
	b.compare("capacity", "1/s", sourceCapacity, capacity)
	lines := []chart.Line{{Name: guarded}, {Name: alone}}
	for _, times := range b.Forged {
		answered, forged, err := b.answered(ctx, capacity[alone].Median(), times)
		if err != nil {
			return err
		}
		b.compare(fmt.Sprintf("valid_answered_%dx_forged", times), "%", sourceAnswered, answered)
		if times > 0 {
			b.compare(fmt.Sprintf("forged_sent_%dx", times), "1/s", sourceForged, forged)
		}
		for i := range lines {
			l := &lines[i]
			l.Points = append(l.Points, chart.Point{X: forged[l.Name].Median(), Y: answered[l.Name].Median()})
		}
	}
	return b.Plot("coap-jwt.svg", func(w io.Writer) error { return draw(w, lines) })
}

// draw draws how many of the valid requests are answered, over how many forged ones come.
func draw(w io.Writer, lines []chart.Line) error {
	return chart.Draw(w, chart.Chart{
		Title: "Valid requests while forged ones come", Lines: lines,
		X: chart.Axis{Label: "forged requests (1/s)"}, Y: chart.Axis{Label: "valid ones answered (%)", Max: 125}, // room for the legend
	})
}

func (b *bench) compare(name, unit, source string, samples map[string]report.Samples) {
	b.results = append(b.results, report.Compare(name, unit, report.Higher, source, samples[guarded], map[string]report.Samples{alone: samples[alone]}))
}

// rounds calls f on both sides in each round, in the reverse order of the last round.
func (b *bench) rounds(what string, f func(side string) error) error {
	order := []string{alone, guarded}
	for round := range b.Rounds {
		b.Log("coap-jwt: %s, round %d of %d", what, round+1, b.Rounds)
		for _, name := range order {
			with := b.site.alone
			if name == guarded {
				with = b.site.guarded
			}
			if err := with(func() error { return f(name) }); err != nil {
				return fmt.Errorf("%s, %s: %w", what, name, err)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// capacity samples how many valid requests are answered per second. The first run only lets the server compile what it runs often.
func (b *bench) capacity(ctx context.Context) (map[string]report.Samples, error) {
	rates := map[string]report.Samples{}
	if err := b.site.alone(func() error {
		_, err := b.site.closed(ctx, b.Run)
		return err
	}); err != nil {
		return nil, fmt.Errorf("capacity: %w", err)
	}
	return rates, b.rounds("capacity", func(side string) error {
		rate, err := b.site.closed(ctx, b.Run)
		rates[side] = append(rates[side], rate)
		return err
	})
}

// answered samples which share of the valid requests is answered, and how many forged ones were sent per second, which is to be a multiple of the
// capacity.
func (b *bench) answered(ctx context.Context, capacity float64, times int) (answered, forged map[string]report.Samples, err error) {
	answered, forged = map[string]report.Samples{}, map[string]report.Samples{}
	return answered, forged, b.rounds(fmt.Sprintf("%d times the capacity of forged requests", times), func(side string) error {
		o, err := b.site.open(ctx, share*capacity, float64(times)*capacity, b.Run)
		answered[side] = append(answered[side], 100*o.answered)
		forged[side] = append(forged[side], o.forged)
		return err
	})
}

package ikernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/internal/chart"
)

// tenantsRate is at which requests per second, of all tenants together, hits are timed.
const tenantsRate = 100_000

// tenants measures one to several tenants. Each has a memcached of one thread, behind a pair and in a namespace of its own, and a cache of its own.
// GETs by Zipf's law go to all in turn.
func (b *bench) tenants(ctx context.Context) error {
	return b.withTenants(ctx, func(all sites) error {
		m := &mix{name: "tenants", trace: trace{steps: zipfSteps(4, b.Steps, b.Own, 0.9, 0), keys: b.Own / 2}}
		rates := map[string]*chart.Line{alone: {Name: alone}, cached: {Name: cached}}
		for n := 1; n <= len(all); n++ {
			m.trace.warm = n * b.Warm / 3
			samples, err := b.sample(ctx, all[:n], m, fmt.Sprintf("n%d", n))
			if err != nil {
				return err
			}
			for name, line := range rates {
				line.Points = append(line.Points, chart.Point{X: float64(n), Y: samples[name].Median() / 1e3})
			}
		}
		if err := b.timeTenants(ctx, all, m.trace); err != nil {
			return err
		}
		return b.Plot("memcached-tenants.svg", func(w io.Writer) error { return drawTenants(w, *rates[cached], *rates[alone]) })
	})
}

// withTenants calls f on the tenants' memcacheds.
func (b *bench) withTenants(ctx context.Context, f func(sites) error) (err error) {
	var all sites
	for i := range b.Tenants {
		p := b.pair
		if i > 0 {
			if p, err = link.New(link.Options{}); err != nil {
				return err
			}
			defer func() { err = errors.Join(err, p.Close()) }()
		}
		b.Log("memcached: %d keys of tenant %d of %d", b.Own, i+1, b.Tenants)
		s, err := newSite(ctx, p, 1, b.Own)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		all = append(all, s)
	}
	return f(all)
}

// timeTenants times hits of one tenant, of two and so on, at the same rate of all together.
func (b *bench) timeTenants(ctx context.Context, all sites, t trace) (err error) {
	unpin, err := pin(all)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unpin()) }()
	for n := 1; n <= len(all); n++ {
		t.warm = n * b.Warm / 24
		hit := newTiming(fmt.Sprintf("hit_n%d", n), fmt.Sprintf("hits of %d tenants", n), t, tenantsRate, gen.Cached)
		if err := b.time(ctx, all[:n], []*timing{hit}); err != nil {
			return err
		}
	}
	return nil
}

// evenness is how much the tenant with the fewest answers got, in % of an equal share.
func evenness(r gen.Result) float64 {
	return 100 * float64(slices.Min(r.Tenants)) * float64(len(r.Tenants)) / float64(r.Delivered)
}

// drawTenants draws what all tenants together get, over how many they are.
func drawTenants(w io.Writer, lines ...chart.Line) error {
	return chart.Draw(w, chart.Chart{
		Title: "GETs by Zipf's law (0.9)", Lines: lines, X: chart.Axis{Label: "tenants"}, Y: chart.Axis{Label: "answered, all together (1,000/s)", Log: true},
	})
}

package ikernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/link"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
)

// The sides.
const (
	alone  = "alone"
	cached = "with the cache"
)

// Where figures come from.
const (
	sourceRate    = "open loop from BPF_PROG_TEST_RUN live frames; right replies counted where they arrive"
	sourceLatency = "open loop from BPF_PROG_TEST_RUN live frames; from the frame that is made to the reply that is counted"
)

// Benchmarks are the parts of the suite.
var Benchmarks = []string{"hits", "zipf", "latency", "tenants", "shares"}

// Size says how much is measured.
type Size struct {
	Threads []int         // of memcached
	Hot     int           // keys that all fit the cache, a power of two
	Keys    int           // keys that do not, a power of two; the cache has memory for a sixteenth
	Steps   int           // of a trace, a power of two
	Warm    int           // GETs by which a cache is warmed that has not memory for all
	Tenants int           // at most
	Own     int           // keys of each tenant, a power of two; its cache has memory for half of them
	Run     time.Duration // of one load
	Phase   int           // samples of a phase of shares, of 10 ms
}

// Full is what a benchmark measures. The trace is far longer than the time in which the cache forgets how often keys were asked for.
var Full = Size{Threads: []int{1, 2, 4}, Hot: 1 << 13, Keys: 1 << 22, Steps: 1 << 25, Warm: 12_000_000, Tenants: 6, Own: 1 << 20, Run: 300 * time.Millisecond, Phase: 100}

// itemBytes is what an item of 16-byte key and value takes of the cache's memory.
const itemBytes = 96

// A bench is one run of the suite.
type bench struct {
	measure.Options
	Size
	pair    *link.Pair
	results []report.Result
}

// Run compares a memcached with the cache against the same process alone, behind a pair.
func Run(ctx context.Context, p *link.Pair, o measure.Options, size Size) ([]report.Result, error) {
	b := &bench{Options: o, Size: size, pair: p}
	for i, run := range []func(context.Context) error{b.hits, b.zipf, b.latency, b.tenants, b.shares} {
		if name := Benchmarks[i]; o.Benchmark == "" || o.Benchmark == name {
			if err := run(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return b.results, nil
}

func (b *bench) add(r report.Result) { b.results = append(b.results, r) }

// with calls f on a side that exists while f runs. A cache is warm then.
func (b *bench) with(ctx context.Context, s sites, name string, t trace, f func(*side) error) error {
	if name == alone {
		return s.alone(t.steps, f)
	}
	return s.cached(max(t.keys*itemBytes, memoryMin), nil, t.steps, func(d *side) error {
		if err := d.warm(ctx, t); err != nil {
			return err
		}
		return f(d)
	})
}

// A trace is what is asked for.
type trace struct {
	steps []gen.Step
	keys  int // that the cache has memory for
	warm  int // GETs before anything is measured; 0: as many as it takes until all are hits
}

// hot asks for keys that the cache has far more memory for: with little to spare, some buckets of its index would have too many.
func (b *bench) hot() trace {
	return trace{steps: uniformSteps(1, b.Hot, b.Hot), keys: 64 * b.Hot}
}

// skewed asks by Zipf's law for many more keys than the cache has memory for.
func (b *bench) skewed(sets float64) trace {
	return trace{steps: zipfSteps(2, b.Steps, b.Keys, 0.99, sets), keys: b.Keys / 16, warm: b.Warm}
}

// cold asks for all keys alike, so that hardly any is worth its memory.
func (b *bench) cold() trace {
	return trace{steps: uniformSteps(3, b.Keys, b.Keys), keys: b.Keys / 16, warm: b.Warm}
}

// rounds calls f on both sides in each round, in the reverse order of the last round.
func (b *bench) rounds(what string, f func(side string) error) error {
	order := []string{alone, cached}
	for round := range b.Rounds {
		b.Log("memcached: %s, round %d of %d", what, round+1, b.Rounds)
		for _, name := range order {
			if err := f(name); err != nil {
				return fmt.Errorf("%s, %s: %w", what, name, err)
			}
		}
		slices.Reverse(order)
	}
	return nil
}

// withSite calls f on a memcached with so many keys.
func (b *bench) withSite(ctx context.Context, threads, keys int, f func(sites) error) error {
	b.Log("memcached: %d keys for %d threads", keys, threads)
	s, err := newSite(ctx, b.pair, threads, keys)
	if err != nil {
		return err
	}
	return errors.Join(f(sites{s}), s.stop())
}

// compare adds a result of both sides' samples.
func (b *bench) compare(name, unit string, better report.Better, source string, samples map[string]report.Samples) {
	b.add(report.Compare(name, unit, better, source, samples[cached], map[string]report.Samples{alone: samples[alone]}))
}

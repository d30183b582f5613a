package coap

import (
	"context"
	"errors"
	"io"
	"math"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/gen"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/timeline"
	"github.com/lambdanic/lambdanic/internal/chart"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
)

const sourceShares = "open loop from BPF_PROG_TEST_RUN live frames; forged requests that the guard checked, by its own counter"

// halfPoints is by how many points tenants may be off a half.
const halfPoints = 5

// sharers are two tenants of equal weight. The second one's tokens are larger, so that their check takes longer.
var sharers = []struct {
	name   string
	claims jwt.MapClaims
}{{"tenant 1", claims}, {"tenant 2, tokens 40 % larger", longClaims}}

// sharePhases say which tenants are asked: each alone, and then both. They come in cycles, so that whatever slows the machine for a while slows all of them.
var sharePhases = [][]int{{0}, {1}, {0, 1}}

// shares measures which part of what it gets alone each of two tenants gets, when both ask for more than there is.
func (b *bench) shares(ctx context.Context) (err error) {
	l, err := limits.New()
	if err != nil {
		return err
	}
	defer l.Close()
	if err := l.Set(api.Budget{Time: timeline.Budget}, timeline.Weights{1: 1, 2: 1}.Quotas()); err != nil {
		return err
	}
	var tenants []*tenant
	shared := demux.New(nil)
	for i, s := range sharers {
		t, err1 := newTenant(b.pair, i+1, s.claims, shared, l)
		if err1 != nil {
			return err1
		}
		defer func() { err = errors.Join(err, t.close()) }()
		tenants = append(tenants, t)
	}
	g, err := gen.New(b.pair, gen.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return b.shareRounds(ctx, g, tenants)
}

// shareRounds follows the phases in each round.
func (b *bench) shareRounds(ctx context.Context, g *gen.Generator, tenants []*tenant) error {
	var alone, parts [2]report.Samples
	var off, unequal report.Samples
	var last *timeline.Timeline
	for round := range b.Rounds {
		b.Log("coap-jwt: shares, round %d of %d", round+1, b.Rounds)
		f, err := b.followShares(ctx, g, tenants)
		if err != nil {
			return err
		}
		own, both := b.meanRates(f)
		most, got := 0.0, timeline.Parts(both, own)
		for i, part := range got {
			alone[i], parts[i] = append(alone[i], own[i]), append(parts[i], 100*part)
			most = max(most, math.Abs(100*part-50))
		}
		off, unequal, last = append(off, most), append(unequal, timeline.Deviation(got, []float64{0.5, 0.5})), f
	}
	b.results = append(b.results,
		report.Compare("shares.off_half_of_own_maximum", "points", report.Lower, sourceShares, off, report.Goal(halfPoints)),
		report.Compare("shares.off_equal_parts", "points", report.Lower, sourceShares, unequal, report.Goal(halfPoints)),
		report.Compare("shares.tenant_1_of_own_maximum", "%", report.Higher, sourceShares, parts[0], nil),
		report.Compare("shares.tenant_2_of_own_maximum", "%", report.Higher, sourceShares, parts[1], nil),
		report.Compare("shares.own_maximum", "1/s", report.Higher, sourceShares, alone[1], map[string]report.Samples{sharers[0].name: alone[0]}),
	)
	c := last.Chart("Guards of two tenants: each alone, then both")
	c.Y.Label = "checked (1,000/s)"
	return b.Plot("coap-jwt-shares.svg", func(w io.Writer) error { return chart.Draw(w, c) })
}

// meanRates are what the tenants get alone and together, on average of all cycles.
func (b *bench) meanRates(f *timeline.Timeline) (own, both []float64) {
	own, both = make([]float64, len(sharers)), make([]float64, len(sharers))
	for at := range b.Cycles * len(sharePhases) {
		sum, asked := own, sharePhases[at%len(sharePhases)]
		if len(asked) > 1 {
			sum = both
		}
		for _, i := range asked {
			sum[i] += f.Rates(at)[i] / float64(b.Cycles)
		}
	}
	return own, both
}

// followShares follows all phases of a round.
func (b *bench) followShares(ctx context.Context, g *gen.Generator, tenants []*tenant) (*timeline.Timeline, error) {
	l := timeline.Load{
		Unit:   "answered (1,000/s)",
		Phases: b.Cycles * len(sharePhases), Samples: b.Phase,
		Offer: func(ctx context.Context, d time.Duration) error {
			load := forgedLoad(tenants, 0)
			load.Duration = d
			_, err := g.Run(ctx, load)
			return err
		},
		Begin: func(_ context.Context, i int) error {
			if i == 0 {
				return nil
			}
			return g.Change(forgedLoad(tenants, i))
		},
		Delivered: func() (all []float64, err error) {
			for _, t := range tenants {
				n, err := t.refused()
				if err != nil {
					return nil, err
				}
				all = append(all, n)
			}
			return all, nil
		},
	}
	for _, s := range sharers {
		l.Sharers = append(l.Sharers, s.name)
	}
	return timeline.Follow(ctx, l)
}

// forgedLoad is what a phase offers. All phases have as many requests, with room for the longest ones.
func forgedLoad(tenants []*tenant, phase int) (l gen.Load) {
	asked := sharePhases[phase%len(sharePhases)]
	for i, t := range tenants {
		l.Others = append(l.Others, tenants[asked[i%len(asked)]].forged)
		l.Room = max(l.Room, len(t.forged.Payload))
	}
	return l
}

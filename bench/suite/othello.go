package suite

import (
	"context"
	"fmt"
	"time"

	"github.com/lambdanic/lambdanic/apps/othello"
	"github.com/lambdanic/lambdanic/apps/othello/plain"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/report"
	"github.com/lambdanic/lambdanic/bench/stand"
)

// sourceOneCore is how programs that use one core are timed.
const sourceOneCore = "wall clock of one goroutine; every result checked"

// perftDepth is that at which the generators of moves are compared.
const perftDepth = 10

func runOthello(ctx context.Context, _ *stand.Stand, o measure.Options) ([]report.Result, error) {
	if err := checkPerft(ctx, o, len(othello.PerftOfStart)-1); err != nil {
		return nil, err
	}
	perft, err := comparePerft(ctx, o, perftDepth)
	if err != nil {
		return nil, err
	}
	search, err := timeSearches(ctx, o)
	if err != nil {
		return nil, err
	}
	return append([]report.Result{perft}, search...), nil
}

// checkPerft counts positions in both conventions, up to a depth, as others have.
func checkPerft(ctx context.Context, o measure.Options, deepest int) error {
	for depth, want := range othello.PerftOfStart[:deepest+1] {
		o.Log("othello: counting positions at depth %d of %d", depth, deepest)
		counts, err := othello.Perft(ctx, othello.Start, depth, false)
		if err != nil {
			return err
		}
		free, err := othello.Perft(ctx, othello.Start, depth, true)
		if err != nil {
			return err
		}
		if counts != want.PassCounts || free != want.PassFree {
			return fmt.Errorf("%w: depth %d has %d positions, and %d with passes free; want %+v", measure.ErrWrong, depth, counts, free, want)
		}
	}
	return nil
}

// comparePerft compares the generator of moves with a plain one.
func comparePerft(ctx context.Context, o measure.Options, depth int) (report.Result, error) {
	var ours, theirs report.Samples
	want := othello.PerftOfStart[depth].PassCounts
	rate := func(start time.Time) float64 { return float64(want) / 1e6 / time.Since(start).Seconds() }
	for round := range o.Rounds {
		o.Log("othello: positions, round %d of %d", round+1, o.Rounds)
		start := time.Now()
		n, err := othello.Perft(ctx, othello.Start, depth, false)
		if err != nil {
			return report.Result{}, err
		}
		ours = append(ours, rate(start))
		start = time.Now()
		m := plain.Perft(othello.Start.Own, othello.Start.Opp, depth)
		theirs = append(theirs, rate(start))
		if n != want || m != want {
			return report.Result{}, fmt.Errorf("%w: depth %d has %d positions, and %d by the plain generator; want %d", measure.ErrWrong, depth, n, m, want)
		}
	}
	return report.Compare("perft", "10^6/s", report.Higher, sourceOneCore, ours, map[string]report.Samples{"plain bitboards": theirs}), nil
}

// Figure 5 of the L-NIC paper: a search of five levels on one core of its authors' machine, in µs.
const (
	paperSearchDepth = 5
	paperSearchMean  = 114.8
	paperSearchP99   = 561.6
)

// timeSearches times the search on one core, over positions in the middle of random games.
func timeSearches(ctx context.Context, o measure.Options) ([]report.Result, error) {
	boards := othello.MidGames(1, 2000)
	var mean, p99, paperMean, paperP99 report.Samples
	for round := range o.Rounds {
		o.Log("othello: searches, round %d of %d", round+1, o.Rounds)
		t, err := othello.Time(ctx, boards, paperSearchDepth)
		if err != nil {
			return nil, err
		}
		mean, p99 = append(mean, float64(t.Mean())/1e3), append(p99, float64(t.Percentile(99))/1e3)
		paperMean, paperP99 = append(paperMean, paperSearchMean), append(paperP99, paperSearchP99)
	}
	const theirs = "L-NIC paper, on its machine"
	return []report.Result{
		report.Compare("search_depth5_mean", "µs", report.Lower, sourceOneCore, mean, map[string]report.Samples{theirs: paperMean}),
		report.Compare("search_depth5_p99", "µs", report.Lower, sourceOneCore, p99, map[string]report.Samples{theirs: paperP99}),
	}, nil
}

package othello

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"
)

// Each square has one weight.
func TestWeightsCoverTheBoard(t *testing.T) {
	var all uint64
	for _, w := range weights {
		if all&w.squares != 0 {
			t.Errorf("%v have two weights", SquareNames(all&w.squares))
		}
		all |= w.squares
	}
	if all != ^uint64(0) {
		t.Errorf("%v have none", SquareNames(^all))
	}
}

// What is good for one side is as bad for the other, a mirror changes nothing, and no guess is taken for a victory.
func TestEvaluate(t *testing.T) {
	r := seeded(t)
	for range 5000 {
		b := arbitrary(r)
		v := Evaluate(b)
		mirrored := Board{Own: bits.ReverseBytes64(b.Own), Opp: bits.ReverseBytes64(b.Opp)}
		if Evaluate(b.Pass()) != -v || Evaluate(mirrored) != v {
			t.Fatalf("%+v is worth %d, %d to the other side, and mirrored %d", b, v, Evaluate(b.Pass()), Evaluate(mirrored))
		}
		if over := b.Over(); over != v.Decided() && v != 0 || over && v.Lead() != b.Lead() {
			t.Fatalf("%+v, over: %t, is worth %d", b, over, v)
		}
	}
}

func TestSearchIsMinimax(t *testing.T) {
	r := seeded(t)
	var nodes, all uint64
	for i := range 300 {
		b, depth := played(r, r.IntN(64)), i%6
		want := Minimax(b, depth)
		got, err := Search(t.Context(), b, depth)
		if err != nil || got.Value != want.Value {
			t.Fatalf("%+v, depth %d: got %+v (%v), want %+v", b, depth, got, err, want)
		}
		checkBest(t, b, depth, got)
		nodes, all = nodes+got.Nodes, all+want.Nodes
	}
	if nodes > all/4 {
		t.Errorf("of %d nodes, %d were looked at", all, nodes)
	}
}

// What a searcher has seen before changes no result, and costs no memory.
func TestSearcherIsUsedAgain(t *testing.T) {
	r, again := seeded(t), NewSearcher()
	again.table.generation = math.MaxUint32 - 20 // it begins anew on the way
	for i := range 50 {
		b, depth := played(r, r.IntN(60)), 3+i%4
		fresh, err := NewSearcher().Search(t.Context(), b, depth)
		got, err2 := again.Search(t.Context(), b, depth)
		if err != nil || err2 != nil || got != fresh {
			t.Fatalf("%+v, depth %d: got %+v (%v), want %+v (%v)", b, depth, got, err2, fresh, err)
		}
	}
	at := MidGame(r)
	if n := testing.AllocsPerRun(20, func() { _, _ = again.Search(t.Context(), at, 6) }); n != 0 {
		t.Errorf("a search allocates %v times", n)
	}
}

// checkBest checks that the move leads to the value.
func checkBest(t *testing.T, b Board, depth int, r Result) {
	t.Helper()
	switch {
	case depth == 0 || b.Over():
		if r.Best != None {
			t.Fatalf("%+v has no move, got %s", b, SquareName(r.Best))
		}
	case r.Best == Pass:
		if b.Moves() != 0 || Minimax(b.Pass(), depth-1).Value != -r.Value {
			t.Fatalf("%+v: got a pass", b)
		}
	default:
		if r.Best > 63 || b.Moves()>>r.Best&1 == 0 || Minimax(b.Play(r.Best), depth-1).Value != -r.Value {
			t.Fatalf("%+v, depth %d: %s is not worth %d", b, depth, SquareName(r.Best), r.Value)
		}
	}
}

// solve is the best lead that the side to move can have in the end: the rules, and nothing else.
func solve(b Board) int {
	moves := b.Moves()
	if moves == 0 {
		if b.Pass().Moves() == 0 {
			return b.Lead()
		}
		return -solve(b.Pass())
	}
	best := -64
	for ; moves != 0; moves &= moves - 1 {
		best = max(best, -solve(b.Play(bits.TrailingZeros64(moves))))
	}
	return best
}

func TestSearchIsExactAtTheEnd(t *testing.T) {
	r := seeded(t)
	for solved := 0; solved < 100; {
		b := played(r, 58)
		if b.Empty() > 7 {
			continue
		}
		solved++
		got, err := Search(t.Context(), b, MaxDepth)
		if want := solve(b); err != nil || got.Value.Lead() != want || got.Value.Decided() != (want != 0) {
			t.Fatalf("%+v: got %+v (%v), want a lead of %d", b, got, err, want)
		}
	}
}

func TestSearchEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if r, err := Search(ctx, Start, 30); !errors.Is(err, why) || r.Best != None {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Time per search over positions in the middle of random games, each with a move at least: the median and the 99th percentile.
func BenchmarkSearch(b *testing.B) {
	for depth := 1; depth <= 8; depth++ {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			r := seeded(b)
			var times []time.Duration
			var nodes uint64
			for range b.N {
				at := MidGame(r)
				start := time.Now()
				result, err := Search(b.Context(), at, depth)
				times = append(times, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				nodes += result.Nodes
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
			b.ReportMetric(float64(nodes)/float64(b.N), "nodes/op")
		})
	}
}

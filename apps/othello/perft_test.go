package othello

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func checkPerft(t testing.TB, depth int) {
	t.Helper()
	counts, err := Perft(t.Context(), Start, depth, false)
	free, err2 := Perft(t.Context(), Start, depth, true)
	if want := PerftOfStart[depth]; err != nil || err2 != nil || counts != want.PassCounts || free != want.PassFree {
		t.Errorf("depth %d: %d and %d (%v, %v), want %+v", depth, counts, free, err, err2, want)
	}
}

func TestPerft(t *testing.T) {
	deepest := 11
	if testing.Short() {
		deepest = 9
	}
	for depth := range deepest + 1 {
		checkPerft(t, depth)
	}
}

func TestPerftEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if n, err := Perft(ctx, Start, 20, false); !errors.Is(err, why) || n != 0 {
		t.Errorf("got %d, %v", n, err)
	}
}

// A pass on the last level is a position of its own, or none, and a game that is over is one at any depth.
func TestPerftOfPasses(t *testing.T) {
	passes := Board{Own: 1 << 1, Opp: 1 << 0} // on a1 and b1: whoever moves cannot, the other can to c1
	if passes.Moves() != 0 || passes.Pass().Moves() != 1<<2 {
		t.Fatal("the position is not what the test is about")
	}
	over := Board{Own: 1}
	for _, c := range []struct {
		at    Board
		depth int
	}{{passes, 1}, {passes, 2}, {passes, 9}, {over, 1}, {over, 5}} {
		counts, _ := Perft(t.Context(), c.at, c.depth, false)
		free, _ := Perft(t.Context(), c.at, c.depth, true)
		if counts != 1 || free != 1 {
			t.Errorf("%+v, depth %d: %d and %d", c.at, c.depth, counts, free)
		}
	}
}

func BenchmarkPerft(b *testing.B) {
	for _, depth := range []int{9, 11, 12} {
		for _, passFree := range []bool{false, true} {
			b.Run(fmt.Sprintf("depth=%d/passFree=%t", depth, passFree), func(b *testing.B) {
				want := PerftOfStart[depth].PassCounts
				if passFree {
					want = PerftOfStart[depth].PassFree
				}
				for range b.N {
					if n, err := Perft(b.Context(), Start, depth, passFree); n != want || err != nil {
						b.Fatalf("%d, %v, want %d", n, err, want)
					}
				}
				b.ReportMetric(float64(want)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mpositions/s")
			})
		}
	}
}

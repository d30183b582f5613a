package othello

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// MidGame is a position in the middle of a random game, after 12 to 44 moves, where there is one to make.
func MidGame(r *rand.Rand) Board {
	for {
		if b, ok := playRandomly(r, 12+r.IntN(33)); ok {
			return b
		}
	}
}

// MidGames are so many of these positions, the same for each seed.
func MidGames(seed uint64, n int) []Board {
	r := rand.New(rand.NewPCG(seed, 0))
	boards := make([]Board, n)
	for i := range boards {
		boards[i] = MidGame(r)
	}
	return boards
}

// playRandomly makes that many moves from the start. It fails where the game ends before, or there is no move.
func playRandomly(r *rand.Rand, moves int) (Board, bool) {
	b := Start
	for ; ; moves-- {
		choice := b.Moves()
		if choice == 0 {
			b = b.Pass()
			choice = b.Moves()
		}
		if choice == 0 || moves == 0 {
			return b, choice != 0
		}
		for range r.IntN(bits.OnesCount64(choice)) {
			choice &= choice - 1
		}
		b = b.Play(bits.TrailingZeros64(choice))
	}
}

// A Timing is how long searches to a depth took.
type Timing struct {
	Depth int
	Times []time.Duration // ascending
	Nodes uint64          // of all
}

// Time searches boards to a depth, one after another.
func Time(ctx context.Context, boards []Board, depth int) (Timing, error) {
	t := Timing{Depth: depth, Times: make([]time.Duration, len(boards))}
	s := NewSearcher()
	for i, b := range boards {
		if err := ctx.Err(); err != nil { // which a short search does not look at
			return t, err
		}
		start := time.Now()
		r, err := s.Search(ctx, b, depth)
		if err != nil {
			return t, err
		}
		t.Times[i] = time.Since(start)
		t.Nodes += r.Nodes
	}
	slices.Sort(t.Times)
	return t, nil
}

// Percentile is the time within which that share of the searches, in per cent, ended: the nearest rank.
func (t *Timing) Percentile(p float64) time.Duration {
	rank := int(math.Ceil(p / 100 * float64(len(t.Times))))
	return t.Times[min(max(rank, 1), len(t.Times))-1]
}

// Mean is that of the times.
func (t *Timing) Mean() time.Duration {
	var sum time.Duration
	for _, d := range t.Times {
		sum += d
	}
	return sum / time.Duration(len(t.Times))
}

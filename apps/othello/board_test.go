package othello

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/lambdanic/lambdanic/apps/othello/plain"
)

// arbitrary is any two sets of squares, whether or not a game gets there.
func arbitrary(r *rand.Rand) Board {
	b := Board{Own: r.Uint64(), Opp: r.Uint64()}
	switch r.IntN(3) { // many empty squares, or few
	case 0:
		b.Own &= r.Uint64()
	case 1:
		b.Opp |= r.Uint64()
	}
	b.Own &^= b.Opp
	return b
}

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(1, 0))
}

// played is a position after up to that many random moves of a game, not beyond its end.
func played(r *rand.Rand, moves int) Board {
	b := Start
	for range moves {
		m := b.Moves()
		if m == 0 {
			if b.Pass().Moves() == 0 {
				break
			}
			b = b.Pass()
			continue
		}
		for range r.IntN(bits.OnesCount64(m)) {
			m &= m - 1
		}
		b = b.Play(bits.TrailingZeros64(m))
	}
	return b
}

func checkBoard(t *testing.T, b Board) {
	t.Helper()
	moves := b.Moves()
	if want := plain.Moves(b.Own, b.Opp); moves != want {
		t.Fatalf("%+v: moves %#x, want %#x", b, moves, want)
	}
	for square := range 64 {
		if (b.Own|b.Opp)>>square&1 != 0 {
			continue
		}
		flips := b.Flips(square)
		if want := plain.Flips(b.Own, b.Opp, square); flips != want || flips != 0 != (moves>>square&1 != 0) {
			t.Fatalf("%+v: %d turns %#x, want %#x", b, square, flips, want)
		}
		if flips == 0 {
			continue
		}
		next := b.Play(square)
		if next.Own&next.Opp != 0 || next.Own|next.Opp != b.Own|b.Opp|1<<square || next.Own != b.Opp&^flips {
			t.Fatalf("%+v: %d gives %+v", b, square, next)
		}
	}
}

func TestMovesAndFlips(t *testing.T) {
	r := seeded(t)
	for range 20000 {
		checkBoard(t, arbitrary(r))
		checkBoard(t, played(r, r.IntN(64)))
	}
}

func FuzzMovesAndFlips(f *testing.F) {
	f.Add(Start.Own, Start.Opp)
	f.Add(uint64(1), ^uint64(0)&^(1|1<<63))                        // a1 and h8 at the ends of all
	f.Add(uint64(0x8100000000000081), uint64(0x7e424242424242_7e)) // corners, and a ring
	f.Fuzz(func(t *testing.T, own, opp uint64) { checkBoard(t, Board{Own: own &^ opp, Opp: opp}) })
}

// A mirror changes which squares there are, and nothing else.
func TestMirrors(t *testing.T) {
	r := seeded(t)
	for range 1000 {
		b := arbitrary(r)
		upside := Board{Own: bits.ReverseBytes64(b.Own), Opp: bits.ReverseBytes64(b.Opp)}
		turned := Board{Own: bits.Reverse64(b.Own), Opp: bits.Reverse64(b.Opp)}
		if upside.Moves() != bits.ReverseBytes64(b.Moves()) || turned.Moves() != bits.Reverse64(b.Moves()) {
			t.Fatalf("%+v is not as its mirror image", b)
		}
	}
}

// positions for benchmarks: 4096 of random games, 4 to 54 moves old.
func benchmarkBoards(b *testing.B) []Board {
	r := seeded(b)
	boards := make([]Board, 4096)
	for i := range boards {
		boards[i] = played(r, 4+r.IntN(51))
	}
	b.ResetTimer()
	return boards
}

var sink uint64

func plainMoves(b Board) uint64             { return plain.Moves(b.Own, b.Opp) }
func plainFlips(b Board, square int) uint64 { return plain.Flips(b.Own, b.Opp, square) }

func BenchmarkMoves(b *testing.B) {
	for _, c := range []struct {
		name  string
		moves func(Board) uint64
	}{{"prefix", Board.Moves}, {"plain", plainMoves}} {
		b.Run(c.name, func(b *testing.B) {
			boards := benchmarkBoards(b)
			for i := range b.N {
				sink += c.moves(boards[i%len(boards)])
			}
		})
	}
}

// Both as a search uses them: all moves of a position, and what each turns.
func BenchmarkMovesAndFlips(b *testing.B) {
	for _, c := range []struct {
		name  string
		moves func(Board) uint64
		flips func(Board, int) uint64
	}{{"prefix", Board.Moves, Board.Flips}, {"plain", plainMoves, plainFlips}} {
		b.Run(c.name, func(b *testing.B) {
			boards := benchmarkBoards(b)
			for i := range b.N {
				at := boards[i%len(boards)]
				for moves := c.moves(at); moves != 0; moves &= moves - 1 {
					sink += c.flips(at, bits.TrailingZeros64(moves))
				}
			}
		})
	}
}

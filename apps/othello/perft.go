package othello

import (
	"context"
	"math/bits"
)

// Perft counts the positions that are depth moves away, and those where the game ends before; the same position reached in two ways counts
// twice. A pass counts as a move, or with passFree as none. It fails if ctx ends. Time grows by 9 for each level at depth 12.
func Perft(ctx context.Context, b Board, depth int, passFree bool) (uint64, error) {
	if depth <= 0 {
		return 1, nil
	}
	if passFree {
		return walk(ctx, b, depth, 0)
	}
	return walk(ctx, b, depth, 1)
}

// patience is how many levels are counted without a look at the context: fewer than 10⁶ positions.
const patience = 6

// walk is Perft where a pass takes that many levels. The last level is counted and not walked through.
func walk(ctx context.Context, b Board, depth, pass int) (uint64, error) {
	moves := b.Moves()
	if moves == 0 {
		if b.Pass().Moves() == 0 || depth == pass {
			return 1, nil
		}
		return walk(ctx, b.Pass(), depth-pass, pass)
	}
	if depth == 1 {
		return uint64(bits.OnesCount64(moves)), nil
	}
	if depth > patience && ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var sum uint64
	for ; moves != 0; moves &= moves - 1 {
		n, err := walk(ctx, b.Play(bits.TrailingZeros64(moves)), depth-1, pass)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

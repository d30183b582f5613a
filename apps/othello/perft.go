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

// PerftOfStart are the numbers of [Start] by depth that others have published, where a pass counts as a move (A. Bik: Perft for Reversi,
// aartbik.com), and where it does not (T. Yamana lists both for Egaroucid, as modes 1 and 2). Those at depth 11 and beyond have games in them
// that ended before.
var PerftOfStart = [...]struct{ PassCounts, PassFree uint64 }{
	{1, 1},
	{4, 4},
	{12, 12},
	{56, 56},
	{244, 244},
	{1396, 1396},
	{8200, 8200},
	{55092, 55092},
	{390216, 390216},
	{3005288, 3005320},
	{24571284, 24571420},
	{212258800, 212260880},
	{1939886636, 1939899208},
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

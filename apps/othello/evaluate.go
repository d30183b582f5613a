package othello

import "math/bits"

// A Value says how good a position is for the side to move: a guess between -Won and Won, or, where the game is over, exactly
// ±(Won + lead in discs), or 0 for a draw.
type Value int32

// Won is what the value of a game that is won exceeds, and no guess reaches.
const Won Value = 10000

// maxValue is that of the greatest victory.
const maxValue = Won + 64

// Decided reports whether v is that of a game that is won or lost.
func (v Value) Decided() bool { return v > Won || v < -Won }

// Lead is by how many discs a decided game is won (or lost, where it is negative).
func (v Value) Lead() int {
	switch {
	case v > Won:
		return int(v - Won)
	case v < -Won:
		return int(v + Won)
	}
	return 0
}

// The weights of squares are those of P. Norvig (Paradigms of Artificial Intelligence Programming, 1992, chapter 18), which are much the
// same in all programs that have such: corners are worth most, the squares beside an empty corner lose it.
var weights = [...]struct {
	squares uint64
	weight  Value
}{
	{0x8100000000000081, 120}, // corners
	{0x4281000000008142, -20}, // beside them on the edge
	{0x0042000000004200, -40}, // beside them on the diagonal
	{0x2400810000810024, 20},  // c1 and the like
	{0x1800008181000018, 5},   // d1
	{0x003c424242423c00, -5},  // the second row
	{0x0000240000240000, 15},  // c3
	{0x0000183c3c180000, 3},   // the middle, and beside it
}

// mobility is the weight of each move that a side has, as one of the two things that decide before corners are taken (P. Rosenbloom: A
// world-championship-level Othello program, Artificial Intelligence 19, 1982).
const mobility = 8

// Evaluate guesses the value of a board, and knows it where the game is over.
func Evaluate(b Board) Value { return evaluate(b, b.Moves()) }

func evaluate(b Board, moves uint64) Value {
	theirs := b.Pass().Moves()
	if moves|theirs == 0 {
		return final(b)
	}
	return squares(b) + mobility*Value(bits.OnesCount64(moves)-bits.OnesCount64(theirs))
}

// squares is what the squares are worth that the side to move has, less those of the other.
func squares(b Board) Value { return worth(b.Own) - worth(b.Opp) }

// worth is the sum of the weights of a set of squares.
func worth(set uint64) Value { return count(set, 0) + worthInside(set) }

// worthInside is worth of a set without corners. It is written out for speed: a loop took twice as long.
func worthInside(set uint64) Value {
	return count(set, 1) + count(set, 2) + count(set, 3) + count(set, 4) + count(set, 5) + count(set, 6) + count(set, 7)
}

func count(set uint64, i int) Value {
	return weights[i].weight * Value(bits.OnesCount64(set&weights[i].squares))
}

// gain is what a move adds to squares, for the side that makes it. No disc on a corner is ever turned.
func gain(square int, flips uint64) Value { return weightOf[square&63] + 2*worthInside(flips) }

// weightOf is the weight of each square.
var weightOf = func() (of [64]Value) {
	for square := range of {
		of[square] = worth(1 << square)
	}
	return of
}()

// classes are all squares, those first that are worth most.
var classes = [...]uint64{
	weights[0].squares,
	^(weights[0].squares | weights[1].squares | weights[2].squares),
	weights[1].squares | weights[2].squares,
}

// final is the value of a game that is over.
func final(b Board) Value {
	switch lead := Value(b.Lead()); {
	case lead > 0:
		return Won + lead
	case lead < 0:
		return -Won + lead
	}
	return 0
}

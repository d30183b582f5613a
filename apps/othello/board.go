// Package othello plays Othello, and searches it on one core or on many hosts.
//
// It is the application that S. Ibanez, M. Shahbaz and N. McKeown chose to show what a network interface owes to a fine-grained
// distributed program (The case for a network fast path to the CPU, HotNets 2019, section 4): a game tree is searched by messages, each of
// which is worth about a microsecond of work.
//
//   - A [Board] is two sets of squares. [Board.Moves] and [Board.Flips] are free of branches. [Perft] counts positions, which checks them
//     against published numbers.
//   - [Search] is alpha-beta with a table of positions on one core, and allocates nothing. [Minimax], which prunes nothing, has the same value.
//     With b moves of a position, both take O(b^depth) at worst, and alpha-beta about O(b^(depth/2)) where its first moves are good.
//   - A [Host] serves the messages of the distributed search: map has a position searched, reduce has the value of one. What carries them is
//     a [Transport]. A [Cluster] is several hosts and whoever asks them: in one process over queues ([NewLocal]) or over UDP ([NewUDP]).
//   - A [Message] has one fixed form on the wire, so that a NIC's program can read it as well.
//   - A [Game] is one that is being played, with its history.
//
// The same tree is meant everywhere: a node's children are the positions after each move, or the position after the pass where there is no
// move, so a pass takes a level. A position where neither side can move is a leaf, at any depth, and its value is exact.
package othello

import (
	"math/bits"

	"github.com/lambdanic/lambdanic/sim/random"
)

// A Board is a position as the side to move sees it. Bit 8*row+column is a square: a1 is bit 0, h1 bit 7, a8 bit 56. As is usual in Othello,
// row 1 is at the top.
type Board struct {
	Own uint64 // discs of the side to move
	Opp uint64 // and those of the other; no square is in both
}

// Start is where a game begins. Black moves.
var Start = Board{Own: 1<<28 | 1<<35, Opp: 1<<27 | 1<<36} // e4 and d5, d4 and e5

// inner are the columns b to g. A run of discs that a step to the side may go through has no other: so no step leaves the board at the left
// and comes back at the right.
const inner = 0x7e7e7e7e7e7e7e7e

// Moves is the set of squares where the side to move may put a disc.
//
// It floods from all own discs at once through the opponent's, in each of the eight directions: a parallel prefix after P. Kogge and
// H. Stone (A parallel algorithm for the efficient solution of a general class of recurrence equations, IEEE Transactions on Computers
// C-22(8), 1973), which takes three steps for the at most six discs of a run, and knows no branch.
func (b Board) Moves() uint64 {
	side := b.Opp & inner
	return (up(b.Own, side, 1) | down(b.Own, side, 1) | up(b.Own, b.Opp, 8) | down(b.Own, b.Opp, 8) |
		up(b.Own, side, 7) | down(b.Own, side, 7) | up(b.Own, side, 9) | down(b.Own, side, 9)) &^ (b.Own | b.Opp)
}

// up are the squares one step behind a run of opp that begins beside a disc of own, towards higher bits. It and down are small enough to be
// compiled into Moves, where all their shifts are by constants.
func up(own, opp uint64, step uint) uint64 {
	run := opp & (own << step)
	run |= opp & (run << step)
	two := opp & (opp << step) // two of opp in a row
	run |= two & (run << (2 * step))
	run |= two & (run << (2 * step))
	return run << step
}

// down is up towards lower bits.
func down(own, opp uint64, step uint) uint64 {
	run := opp & (own >> step)
	run |= opp & (run >> step)
	two := opp & (opp >> step)
	run |= two & (run >> (2 * step))
	run |= two & (run >> (2 * step))
	return run >> step
}

// Flips is the set of discs that a disc on that square turns. It is empty if and only if the move is against the rules; the square has to be
// empty and from 0 to 63.
//
// A ray towards higher bits is walked by the carry of an addition, one towards lower bits by counting leading zeros. Both are well known for
// sliding pieces of chess (Chess Programming Wiki: "Subtracting a Rook from a Blocking Piece", "Classical Approach").
func (b Board) Flips(square int) uint64 {
	r := &rays[square&63]
	var flips uint64
	for i := range 4 {
		ray := r.up[i]
		end := ((b.Opp | ^ray) + 1) & ray & b.Own // the first square of the ray that is not opp, if it is own
		flips |= (end - nonZero(end)) & ray
		ray = r.down[i]
		end = uint64(1<<63) >> bits.LeadingZeros64(ray&^b.Opp) & b.Own
		flips |= -(end << 1) & ray
	}
	return flips
}

// nonZero is 1 for all numbers but 0.
func nonZero(x uint64) uint64 { return (x | -x) >> 63 }

// raySet are the squares that one sees from a square, without it, by direction.
type raySet struct{ up, down [4]uint64 }

var rays = makeRays()

func makeRays() (all [64]raySet) {
	for square := range all {
		for i, step := range [4]struct{ row, column int }{{0, 1}, {1, 0}, {1, -1}, {1, 1}} {
			all[square].up[i] = ray(square, step.row, step.column)
			all[square].down[i] = ray(square, -step.row, -step.column)
		}
	}
	return all
}

func ray(square, rowStep, columnStep int) (set uint64) {
	row, column := square/8+rowStep, square%8+columnStep
	for ; 0 <= row && row < 8 && 0 <= column && column < 8; row, column = row+rowStep, column+columnStep {
		set |= 1 << (8*row + column)
	}
	return set
}

// Play is the board after a move to a square, as the other side sees it. The move has to be one of b.Moves.
func (b Board) Play(square int) Board {
	flips := b.Flips(square)
	return Board{Own: b.Opp &^ flips, Opp: b.Own | flips | 1<<square}
}

// Pass is the board as the other side sees it.
func (b Board) Pass() Board { return Board{Own: b.Opp, Opp: b.Own} }

// Over reports whether neither side can move.
func (b Board) Over() bool { return b.Moves() == 0 && b.Pass().Moves() == 0 }

// Empty is how many squares are.
func (b Board) Empty() int { return 64 - bits.OnesCount64(b.Own|b.Opp) }

// Lead is how many discs more the side to move has.
func (b Board) Lead() int { return bits.OnesCount64(b.Own) - bits.OnesCount64(b.Opp) }

func (b Board) hash() uint64 { return random.Mix(b.Own ^ bits.RotateLeft64(b.Opp, 23)*random.Golden) }

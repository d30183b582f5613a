// Package plain has the rules of Othello on bitboards in the plainest way, each direction walked step by step. It shares no code with package
// othello, whose tests take it for an oracle, and whose speed is measured against it. Squares are numbered as there.
package plain

import "math/bits"

// Moves is the set of squares where own may put a disc. It takes up to eight steps in each of eight directions.
func Moves(own, opp uint64) (moves uint64) {
	for direction := range 8 {
		for run := step(own, direction) & opp; run != 0; run = step(run, direction) & opp {
			moves |= step(run, direction)
		}
	}
	return moves &^ (own | opp)
}

// Flips is the set of discs that a disc of own on that square turns.
func Flips(own, opp uint64, square int) (flips uint64) {
	for direction := range 8 {
		var run uint64
		at := step(1<<square, direction)
		for ; at&opp != 0; at = step(at, direction) {
			run |= at
		}
		if at&own != 0 {
			flips |= run
		}
	}
	return flips
}

// Perft counts the positions that are depth moves away, and those where the game ends before. A pass counts as a move. O(9^depth).
func Perft(own, opp uint64, depth int) uint64 {
	moves := Moves(own, opp)
	switch {
	case depth == 0 || moves == 0 && Moves(opp, own) == 0:
		return 1
	case moves == 0:
		return Perft(opp, own, depth-1)
	case depth == 1:
		return uint64(bits.OnesCount64(moves))
	}
	var sum uint64
	for ; moves != 0; moves &= moves - 1 {
		square := bits.TrailingZeros64(moves)
		flips := Flips(own, opp, square)
		sum += Perft(opp&^flips, own|flips|1<<square, depth-1)
	}
	return sum
}

// step moves all squares by one; what leaves the board is lost.
func step(squares uint64, direction int) uint64 {
	const notA, notH = 0xfefefefefefefefe, 0x7f7f7f7f7f7f7f7f
	switch direction {
	case 0:
		return squares << 1 & notA
	case 1:
		return squares >> 1 & notH
	case 2:
		return squares << 8
	case 3:
		return squares >> 8
	case 4:
		return squares << 7 & notH
	case 5:
		return squares >> 7 & notA
	case 6:
		return squares << 9 & notA
	}
	return squares >> 9 & notH
}

package othello

import (
	"context"
	"math/bits"
)

// A Result is what a search found.
type Result struct {
	Value Value  // for the side to move
	Best  int    // a square, Pass, or None where the game is over or depth 0
	Nodes uint64 // positions that were looked at, the root among them
}

// MaxDepth is enough to search any position to the end of all games: at most 60 moves, and a pass after each.
const MaxDepth = 120

// Search finds the value of a board by looking depth moves ahead, and a move that leads to it. It is alpha-beta (D. Knuth and R. Moore: An
// analysis of alpha-beta pruning, Artificial Intelligence 6, 1975) in the form of negamax, and first tries the moves that look best at
// once. With depth at least twice the number of empty squares, or [MaxDepth], it plays perfectly. It fails if ctx ends.
//
// Time is exponential in depth, and so is at worst that of [Minimax].
func Search(ctx context.Context, b Board, depth int) (Result, error) {
	s := search{ctx: ctx}
	value := s.node(b, b.Moves(), depth, -maxValue, maxValue)
	if s.err != nil {
		return Result{Best: None}, s.err
	}
	return Result{Value: value, Best: s.best, Nodes: s.nodes}, nil
}

type search struct {
	ctx   context.Context
	nodes uint64
	best  int    // of the node that ended last, so in the end of the root
	moves []move // of all nodes from the root to the current one
	err   error
}

// A move is what may be played, and what comes of it.
type move struct {
	board  Board
	moves  uint64 // of the board
	square int
	guess  Value // of the board, for the side to move there: the least is tried first
}

// node is the value of a board, whose moves the caller knows, if it is between alpha and beta; else a bound, on the same side of them.
func (s *search) node(b Board, moves uint64, depth int, alpha, beta Value) Value {
	s.best = None
	switch {
	case depth <= 0:
		s.nodes++
		return evaluate(b, moves)
	case moves == 0:
		s.nodes++
		theirs := b.Pass().Moves()
		if theirs == 0 {
			return final(b)
		}
		v := -s.node(b.Pass(), theirs, depth-1, -beta, -alpha)
		s.best = Pass
		return v
	case depth == 1:
		return s.last(b, moves, beta)
	}
	s.nodes++
	if depth > patience && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	first := len(s.moves)
	s.list(b, moves)
	value, best := -maxValue-1, None
	for i, end := first, len(s.moves); i < end && s.err == nil && value < beta; i++ {
		m := s.next(i)
		if v := -s.node(m.board, m.moves, depth-1, -beta, -max(alpha, value)); v > value {
			value, best = v, m.square
		}
	}
	s.moves = s.moves[:first]
	s.best = best
	return value
}

// last is node at depth 1. To order moves would take longer than to evaluate them.
func (s *search) last(b Board, moves uint64, beta Value) Value {
	s.nodes++
	value := -maxValue - 1
	for ; moves != 0 && value < beta; moves &= moves - 1 {
		s.nodes++
		square := bits.TrailingZeros64(moves)
		if v := -Evaluate(b.Play(square)); v > value {
			value, s.best = v, square
		}
	}
	return value
}

// list appends moves to s.moves.
func (s *search) list(b Board, moves uint64) {
	for ; moves != 0; moves &= moves - 1 {
		square := bits.TrailingZeros64(moves)
		m := move{board: b.Play(square), square: square}
		m.moves = m.board.Moves()
		m.guess = evaluate(m.board, m.moves)
		s.moves = append(s.moves, m)
	}
}

// next moves the one with the least guess of s.moves[i:] to i.
func (s *search) next(i int) move {
	least := i
	for j := i + 1; j < len(s.moves); j++ {
		if s.moves[j].guess < s.moves[least].guess {
			least = j
		}
	}
	s.moves[i], s.moves[least] = s.moves[least], s.moves[i]
	return s.moves[i]
}

// Minimax is [Search] without its pruning: it looks at every position, each one's moves in the order of squares. The distributed search
// does the same.
func Minimax(b Board, depth int) Result {
	moves := b.Moves()
	if depth <= 0 || moves == 0 && b.Pass().Moves() == 0 {
		return Result{Value: evaluate(b, moves), Best: None, Nodes: 1}
	}
	r := Result{Value: -maxValue - 1, Nodes: 1}
	for move, child := range children(b, moves) {
		c := Minimax(child, depth-1)
		r.Nodes += c.Nodes
		if -c.Value > r.Value {
			r.Value, r.Best = -c.Value, move
		}
	}
	return r
}

// children are the boards after each move of a game that is not over, or after the pass.
func children(b Board, moves uint64) func(yield func(int, Board) bool) {
	return func(yield func(int, Board) bool) {
		if moves == 0 {
			yield(Pass, b.Pass())
			return
		}
		for ; moves != 0; moves &= moves - 1 {
			square := bits.TrailingZeros64(moves)
			if !yield(square, b.Play(square)) {
				return
			}
		}
	}
}

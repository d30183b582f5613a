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
// analysis of alpha-beta pruning, Artificial Intelligence 6, 1975) in the form of negamax, and first tries the moves that leave the other
// side few. With depth at least twice the number of empty squares, or [MaxDepth], it plays perfectly. It fails if ctx ends.
//
// Time is exponential in depth, and so is at worst that of [Minimax].
func Search(ctx context.Context, b Board, depth int) (Result, error) {
	s := search{ctx: ctx}
	value := s.node(b, depth, -maxValue, maxValue)
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
	square int
	key    int // the least is tried first
}

// node is the value of a board if it is between alpha and beta; else a bound, on the same side of them as the value.
func (s *search) node(b Board, depth int, alpha, beta Value) Value {
	s.nodes++
	moves := b.Moves()
	s.best = None
	if depth <= 0 {
		return evaluate(b, moves)
	}
	if moves == 0 {
		if b.Pass().Moves() == 0 {
			return final(b)
		}
		v := -s.node(b.Pass(), depth-1, -beta, -alpha)
		s.best = Pass
		return v
	}
	if depth > patience && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	first := len(s.moves)
	s.list(b, moves, depth)
	last := len(s.moves)
	value, best := -maxValue-1, None
	for i := first; i < last && s.err == nil && value < beta; i++ {
		m := s.next(i)
		if v := -s.node(m.board, depth-1, -beta, -max(alpha, value)); v > value {
			value, best = v, m.square
		}
	}
	s.moves = s.moves[:first]
	s.best = best
	return value
}

// list appends moves to s.moves. Their order is worth its time only where they are searched further.
func (s *search) list(b Board, moves uint64, depth int) {
	for ; moves != 0; moves &= moves - 1 {
		square := bits.TrailingZeros64(moves)
		m := move{board: b.Play(square), square: square}
		if depth > 1 {
			theirs := m.board.Moves()
			m.key = bits.OnesCount64(theirs) + cornerKey*(bits.OnesCount64(theirs&corners)-int(corners>>square&1))
		}
		s.moves = append(s.moves, m)
	}
}

// A corner that is taken, or left to the other side, counts as so many moves of the other side's.
const (
	corners   = uint64(0x8100000000000081)
	cornerKey = 4
)

// next moves the one with the least key of s.moves[i:] to i.
func (s *search) next(i int) move {
	least := i
	for j := i + 1; j < len(s.moves); j++ {
		if s.moves[j].key < s.moves[least].key {
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

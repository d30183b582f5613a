package othello

import (
	"context"
	"math/bits"
	"sync"
)

// A Result is what a search found.
type Result struct {
	Value Value  // for the side to move
	Best  int    // a square, Pass, or None where the game is over or depth 0
	Nodes uint64 // positions that were looked at, the root among them
}

// MaxDepth is enough to search any position to the end of all games: at most 60 moves, and a pass after each.
const MaxDepth = 120

// Search finds the value of a board by looking depth moves ahead, and a move that leads to it: see [Searcher.Search]. It keeps searchers
// for use again.
func Search(ctx context.Context, b Board, depth int) (Result, error) {
	s := searchers.Get().(*Searcher)
	defer searchers.Put(s)
	return s.Search(ctx, b, depth)
}

var searchers = sync.Pool{New: func() any { return NewSearcher() }}

// A Searcher searches boards, one at a time. It has a table of a fixed size, 1 MiB, which it uses again: a search allocates nothing.
type Searcher struct {
	ctx    context.Context
	nodes  uint64
	moves  []move // of all nodes from the root to the current one
	table  table
	killer int // the move that last refuted a node of depth 2, or None
	err    error
}

// A move is what may be played, and what comes of it.
type move struct {
	board  Board
	moves  uint64 // of the board
	worth  Value  // of the board's squares
	guess  Value  // of the board, for the side to move there: the least is tried first
	square int
}

// NewSearcher makes one.
func NewSearcher() *Searcher { return &Searcher{table: newTable(), moves: make([]move, 0, 512)} }

// Search finds the value of a board by looking depth moves ahead, and a move that leads to it. Depth above [MaxDepth] is the same as that.
// With depth at least twice the number of empty squares, it plays perfectly. It fails if ctx ends.
//
// It is alpha-beta (D. Knuth and R. Moore: An analysis of alpha-beta pruning, Artificial Intelligence 6, 1975) in the form of negamax. All
// moves but the first of a node are searched with a window of one value, and again if they turn out to be better (T. Marsland and
// M. Campbell: Parallel search of strongly ordered game trees, ACM Computing Surveys 14, 1982). First is the move that was best two levels
// less deep, which a table keeps, then come those that look best at once. Values are those of [Minimax]: the table's are taken only
// where they are of the same depth.
//
// Time is exponential in depth: about that of the square root of [Minimax]'s nodes at best, and twice as many at worst.
func (s *Searcher) Search(ctx context.Context, b Board, depth int) (Result, error) {
	s.ctx, s.nodes, s.killer, s.err, s.moves = ctx, 0, None, nil, s.moves[:0]
	s.table.forget()
	depth = min(depth, MaxDepth)
	moves, worth := b.Moves(), squares(b)
	for d := shallowest + depth%2; d < depth && s.err == nil; d += 2 {
		s.node(b, moves, worth, d, -maxValue, maxValue)
	}
	value, best := s.node(b, moves, worth, depth, -maxValue, maxValue)
	if s.err != nil {
		return Result{Best: None}, s.err
	}
	return Result{Value: value, Best: best, Nodes: s.nodes}, nil
}

// shallowest is the even depth at which a search begins to deepen.
const shallowest = 2

// node is the value of a board, whose moves and worth of squares the caller knows, if it is between alpha and beta; else a bound, on the same
// side of them. Best is a move that has the value.
func (s *Searcher) node(b Board, moves uint64, worth Value, depth int, alpha, beta Value) (value Value, best int) {
	switch {
	case depth <= 0:
		s.nodes++
		return evaluate(b, moves), None
	case moves == 0:
		s.nodes++
		theirs := b.Pass().Moves()
		if theirs == 0 {
			return final(b), None
		}
		v, _ := s.node(b.Pass(), theirs, -worth, depth-1, -beta, -alpha)
		return -v, Pass
	case depth == 1:
		return s.last(b, moves, worth, alpha, beta)
	}
	s.nodes++
	if depth > patience && s.ctx.Err() != nil {
		s.err = context.Cause(s.ctx)
	}
	e, known := s.table.find(b)
	if known && e.decides(depth, alpha, beta) {
		return e.value, int(e.best)
	}
	hint := None
	switch {
	case known:
		hint = int(e.best)
	case depth == 2:
		hint = s.killer
	}
	value, best = s.try(b, moves, worth, depth, alpha, beta, hint)
	if s.err == nil {
		s.table.set(e, b, depth, alpha, beta, value, best)
	}
	if depth == 2 && value >= beta {
		s.killer = best
	}
	return value, best
}

// try is node with the move first that a hint says. The others are listed only if that does not suffice.
func (s *Searcher) try(b Board, moves uint64, worth Value, depth int, alpha, beta Value, hint int) (value Value, best int) {
	value, best = -maxValue-1, None
	if hint < Pass && moves>>hint&1 != 0 {
		moves &^= 1 << hint
		var m move
		m.play(b, hint, worth)
		value, best = s.child(&m, depth, alpha, beta, false), hint
		if value >= beta {
			return value, best
		}
	}
	first := len(s.moves)
	s.list(b, moves, worth)
	for i, end := first, len(s.moves); i < end && s.err == nil && value < beta; i++ {
		m := s.next(i)
		if v := s.child(m, depth, max(alpha, value), beta, best != None && depth > 2); v > value {
			value, best = v, m.square
		}
	}
	s.moves = s.moves[:first]
	return value, best
}

// child is what a move is worth at a node of that depth. Scout asks first whether it is more than alpha; at depth 2, that saves less than it costs.
func (s *Searcher) child(m *move, depth int, alpha, beta Value, scout bool) Value {
	if scout && beta > alpha+1 {
		v, _ := s.node(m.board, m.moves, m.worth, depth-1, -alpha-1, -alpha)
		if -v <= alpha || -v >= beta {
			return -v
		}
	}
	v, _ := s.node(m.board, m.moves, m.worth, depth-1, -beta, -alpha)
	return -v
}

// last is node at depth 1. To order moves would take longer than to evaluate them: corners come first, and what is beside them last.
func (s *Searcher) last(b Board, moves uint64, worth, alpha, beta Value) (value Value, best int) {
	s.nodes++
	value, best = -maxValue-1, None
	for _, class := range classes {
		for m := moves & class; m != 0; m &= m - 1 {
			s.nodes++
			square := bits.TrailingZeros64(m)
			v := leaf(b, square, worth, max(alpha, value))
			if v > value {
				value, best = v, square
			}
			if value >= beta {
				return value, best
			}
		}
	}
	return value, best
}

// leaf is what the board after a move is worth, for the side that makes it, if it is more than alpha; else a bound that is not. The other
// side's moves can only lessen it, so they are found only where they matter.
func leaf(b Board, square int, worth, alpha Value) Value {
	flips := b.Flips(square)
	v := worth + gain(square, flips)
	next := Board{Own: b.Own | flips | 1<<square, Opp: b.Opp &^ flips}
	ours := next.Moves()
	v += mobility * Value(bits.OnesCount64(ours))
	if ours != 0 && v <= alpha {
		return v
	}
	theirs := next.Pass().Moves()
	if ours|theirs == 0 {
		return final(next)
	}
	return v - mobility*Value(bits.OnesCount64(theirs))
}

// list appends moves to s.moves.
func (s *Searcher) list(b Board, moves uint64, worth Value) {
	for ; moves != 0; moves &= moves - 1 {
		s.moves = append(s.moves, move{})
		m := &s.moves[len(s.moves)-1]
		m.play(b, bits.TrailingZeros64(moves), worth)
		// Of the two sides' moves, those of the other one are not known yet. They are the fewer, the more these are.
		m.guess = m.worth + 2*mobility*Value(bits.OnesCount64(m.moves))
	}
}

// play fills in what comes of a move.
func (m *move) play(b Board, square int, worth Value) {
	flips := b.Flips(square)
	m.square = square
	m.board = Board{Own: b.Opp &^ flips, Opp: b.Own | flips | 1<<square}
	m.moves = m.board.Moves()
	m.worth = -worth - gain(square, flips)
}

// next moves the one with the least guess of s.moves[i:] to i.
func (s *Searcher) next(i int) *move {
	least := i
	for j := i + 1; j < len(s.moves); j++ {
		if s.moves[j].guess < s.moves[least].guess {
			least = j
		}
	}
	s.moves[i], s.moves[least] = s.moves[least], s.moves[i]
	return &s.moves[i]
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

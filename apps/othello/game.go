package othello

import (
	"fmt"
	"strings"
)

// A Game is one that is played: its positions, and the moves between them.
type Game struct {
	positions []Position // one more than moves
	moves     []int
}

// NewGame is one before its first move.
func NewGame() *Game { return &Game{positions: []Position{StartPosition()}} }

// Position is the current one.
func (g *Game) Position() Position { return g.positions[len(g.positions)-1] }

// Moves are those that were played, with passes.
func (g *Game) Moves() []int { return g.moves }

// Play makes a move: a square, or Pass. Its error says why it is none, and which there are.
func (g *Game) Play(square int) error {
	p := g.Position()
	moves := p.Moves()
	var why string
	switch {
	case square == Pass && moves == 0 && !p.Over():
	case square == Pass && moves != 0:
		why = "who has a move has to make it"
	case moves == 0:
		return fmt.Errorf("%s is not a move: %s has none", SquareName(square), p.Turn)
	case (p.Own|p.Opp)>>square&1 != 0:
		why = "there is a disc on it"
	case moves>>square&1 == 0:
		why = "it turns nothing"
	}
	if why != "" {
		return fmt.Errorf("%s is not a move: %s; your moves are %s", SquareName(square), why, strings.Join(SquareNames(moves), ", "))
	}
	g.positions = append(g.positions, p.Play(square))
	g.moves = append(g.moves, square)
	return nil
}

// Undo takes back the last move of one of those sides, and all that came of it, passes too. It reports whether there was one.
func (g *Game) Undo(of func(Side) bool) bool {
	for i := len(g.moves) - 1; i >= 0; i-- {
		if g.moves[i] != Pass && of(g.positions[i].Turn) {
			g.moves, g.positions = g.moves[:i], g.positions[:i+1]
			return true
		}
	}
	return false
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/bits"
	"strings"

	"github.com/lambdanic/lambdanic/apps/othello"
	"github.com/lambdanic/lambdanic/internal/ui"
)

// othelloGame is a game at the terminal.
type othelloGame struct {
	out, progress io.Writer
	depth         int
	human         othello.Side
	two           bool
	game          *othello.Game
}

// othelloHelp is what `help` answers in a game.
const othelloHelp = `d3     put a disc on d3; a + on the board is a move
hint   ask the program for a move
undo   take back your last move, and the program's answer
board  show the board again
quit   leave the game`

// typed is a line that was read, or why there is none: io.EOF in the end.
type typed struct {
	line string
	err  error
}

// readLines passes on what is read until ctx ends, as a read cannot be interrupted.
func readLines(ctx context.Context, r io.Reader) <-chan typed {
	lines := make(chan typed)
	go func() {
		s := bufio.NewScanner(r)
		for s.Scan() {
			select {
			case lines <- typed{line: s.Text()}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case lines <- typed{err: cmp.Or(s.Err(), io.EOF)}:
		case <-ctx.Done():
		}
	}()
	return lines
}

// play plays a game until it is over, left, or ctx ends.
func (g *othelloGame) play(ctx context.Context, lines <-chan typed) error {
	g.game = othello.NewGame()
	g.show()
	for p := g.game.Position(); !p.Over(); p = g.game.Position() {
		if p.Moves() == 0 {
			g.say("%s has no move and passes\n", p.Turn)
			if err := g.game.Play(othello.Pass); err != nil {
				return err
			}
			g.show()
			continue
		}
		turn := g.answer
		if g.person(p.Turn) {
			turn = func(ctx context.Context) (bool, error) { return g.ask(ctx, lines) }
		}
		if goOn, err := turn(ctx); err != nil || !goOn {
			return err
		}
	}
	g.say("the game is over: %s\n", g.outcome())
	return nil
}

// person reports whether one plays that side.
func (g *othelloGame) person(s othello.Side) bool { return g.two || s == g.human }

// say writes to the player. Where nobody reads any more, nobody writes either.
func (g *othelloGame) say(format string, args ...any) { fmt.Fprintf(g.out, format, args...) }

// ask has a person write something, and does it. It reports whether the game goes on.
func (g *othelloGame) ask(ctx context.Context, lines <-chan typed) (bool, error) {
	g.say("%s> ", g.game.Position().Turn)
	select {
	case <-ctx.Done():
		g.say("\n")
		return false, context.Cause(ctx)
	case t := <-lines:
		switch {
		case t.err == io.EOF:
			g.say("\nthe game is left\n")
			return false, nil
		case t.err != nil:
			return false, fmt.Errorf("read a move: %w", t.err)
		}
		return g.obey(ctx, strings.ToLower(strings.TrimSpace(t.line)))
	}
}

func (g *othelloGame) obey(ctx context.Context, word string) (goOn bool, err error) {
	switch word {
	case "":
	case "quit", "exit", "q":
		g.say("the game is left\n")
		return false, nil
	case "help", "?":
		g.say("%s\n", othelloHelp)
	case "board":
		g.show()
	case "undo":
		if !g.game.Undo(g.person) {
			g.say("there is no move of yours to take back\n")
			break
		}
		g.show()
	case "hint":
		r, err := g.think(ctx)
		if err != nil {
			return false, err
		}
		g.say("%s (%s)\n", othello.SquareName(r.Best), othelloValue(r.Value, g.game.Position().Turn))
	default:
		g.move(word)
	}
	return true, nil
}

// move plays what a person wrote, or says why not.
func (g *othelloGame) move(word string) {
	square, err := othello.ParseSquare(word)
	if err != nil {
		g.say("%v; `help` names what else can be written\n", err)
		return
	}
	if err := g.game.Play(square); err != nil {
		g.say("%v\n", err)
		return
	}
	g.show()
}

// answer is the program's move. The game goes on.
func (g *othelloGame) answer(ctx context.Context) (bool, error) {
	turn := g.game.Position().Turn
	r, err := g.think(ctx)
	if err != nil {
		return false, err
	}
	if err := g.game.Play(r.Best); err != nil {
		return false, err
	}
	g.say("%s plays %s\n", turn, othello.SquareName(r.Best))
	g.show()
	return true, nil
}

// think searches the current position: to the end of the game where that is not farther away than the level looks ahead.
func (g *othelloGame) think(ctx context.Context) (othello.Result, error) {
	defer ui.Progress(g.progress, "thinking")()
	p, depth := g.game.Position(), g.depth
	if p.Empty() <= depth {
		depth = othello.MaxDepth
	}
	return othello.Search(ctx, p.Board, depth)
}

// show draws the board. The disc that was put last is painted.
func (g *othelloGame) show() {
	p := g.game.Position()
	last := othello.None
	if moves := g.game.Moves(); len(moves) > 0 {
		last = moves[len(moves)-1]
	}
	g.say("\n    a b c d e f g h\n")
	for row := range 8 {
		cells := make([]string, 8)
		for column := range cells {
			square := 8*row + column
			cells[column] = g.cell(p, square)
			if square == last {
				cells[column] = ui.Colour(g.out, ui.Yellow, cells[column])
			}
		}
		g.say("  %d %s\n", row+1, strings.Join(cells, " "))
	}
	g.say("  black (X) %d, white (O) %d\n\n", bits.OnesCount64(p.Discs(othello.Black)), bits.OnesCount64(p.Discs(othello.White)))
}

// cell is a square: a disc, a move, or nothing.
func (g *othelloGame) cell(p othello.Position, square int) string {
	at := uint64(1) << square
	switch {
	case p.Discs(othello.Black)&at != 0:
		return string(othello.Black.Letter())
	case p.Discs(othello.White)&at != 0:
		return string(othello.White.Letter())
	case p.Moves()&at != 0:
		return ui.Colour(g.out, ui.Green, "+")
	}
	return "."
}

// othelloResult is what `othello --json` prints.
type othelloResult struct {
	Moves    []string `json:"moves"`
	Position string   `json:"position"` // in the end
	Black    int      `json:"black"`    // discs
	White    int      `json:"white"`
	Over     bool     `json:"over"`
	Winner   string   `json:"winner,omitempty"` // black or white; nobody in a draw
}

func (g *othelloGame) result() othelloResult {
	p := g.game.Position()
	r := othelloResult{Moves: []string{}, Position: p.String(), Over: p.Over()}
	for _, m := range g.game.Moves() {
		r.Moves = append(r.Moves, othello.SquareName(m))
	}
	r.Black, r.White = bits.OnesCount64(p.Discs(othello.Black)), bits.OnesCount64(p.Discs(othello.White))
	switch {
	case r.Over && r.Black > r.White:
		r.Winner = othello.Black.String()
	case r.Over && r.Black < r.White:
		r.Winner = othello.White.String()
	}
	return r
}

func (g *othelloGame) outcome() string {
	r := g.result()
	if r.Winner == "" {
		return fmt.Sprintf("a draw, %d to %d", r.Black, r.White)
	}
	return fmt.Sprintf("%s wins, %d to %d", r.Winner, max(r.Black, r.White), min(r.Black, r.White))
}

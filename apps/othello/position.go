package othello

import (
	"fmt"
	"math/bits"
	"strings"
)

// A Side is one of the players. Black, the zero Side, begins.
type Side bool

// The sides.
const (
	Black Side = false
	White Side = true
)

func (s Side) String() string {
	if s == White {
		return "white"
	}
	return "black"
}

// Letter is what a disc of the side is in a position's text.
func (s Side) Letter() byte {
	if s == White {
		return 'O'
	}
	return 'X'
}

// ParseSide reads black or white, or the letter of a disc.
func ParseSide(text string) (Side, error) {
	switch strings.ToLower(text) {
	case "black", "x", "*":
		return Black, nil
	case "white", "o":
		return White, nil
	}
	return Black, fmt.Errorf("%q is no side: write black or white", text)
}

// Pass is what SquareName calls a pass. None is no square at all.
const (
	Pass = 64
	None = 65
)

// SquareName is a1 to h8, or pass; "-" is none of them.
func SquareName(square int) string {
	switch {
	case 0 <= square && square < 64:
		return string([]byte{'a' + byte(square%8), '1' + byte(square/8)})
	case square == Pass:
		return "pass"
	}
	return "-"
}

// ParseSquare reads a1 to h8.
func ParseSquare(name string) (int, error) {
	if len(name) == 2 {
		column, row := name[0]|0x20, name[1]
		if 'a' <= column && column <= 'h' && '1' <= row && row <= '8' {
			return int(row-'1')*8 + int(column-'a'), nil
		}
	}
	return None, fmt.Errorf("%q is no square: write a column from a to h and a row from 1 to 8, as d3", name)
}

// SquareNames are those of a set, in the order of its bits.
func SquareNames(set uint64) []string {
	names := []string{}
	for ; set != 0; set &= set - 1 {
		names = append(names, SquareName(bits.TrailingZeros64(set)))
	}
	return names
}

// A Position is a board and who moves on it.
type Position struct {
	Board
	Turn Side
}

// StartPosition is that of a new game.
func StartPosition() Position { return Position{Board: Start, Turn: Black} }

// Discs are those of a side.
func (p Position) Discs(s Side) uint64 {
	if s == p.Turn {
		return p.Own
	}
	return p.Opp
}

// Play is the position after a move, which has to be one of p.Moves, or Pass.
func (p Position) Play(square int) Position {
	next := Position{Board: p.Board.Pass(), Turn: !p.Turn}
	if square != Pass {
		next.Board = p.Board.Play(square)
	}
	return next
}

// String is what ParsePosition reads: the squares from a1 to h8, row by row, then who moves.
func (p Position) String() string {
	text := make([]byte, 0, 66)
	for square := range 64 {
		switch {
		case p.Discs(Black)>>square&1 != 0:
			text = append(text, Black.Letter())
		case p.Discs(White)>>square&1 != 0:
			text = append(text, White.Letter())
		default:
			text = append(text, '.')
		}
	}
	return string(append(text, ' ', p.Turn.Letter()))
}

// PositionSyntax says what ParsePosition takes.
const PositionSyntax = "64 squares from a1 to h8, row by row, each X (black), O (white) or . (empty), and then X or O for who moves"

// ParsePosition reads what String writes. It takes * and x for X, o for O and - for . as well, and leaves out blanks and ends of lines.
func ParsePosition(text string) (p Position, err error) {
	squares := strings.Join(strings.Fields(text), "")
	if len(squares) != 65 {
		return p, fmt.Errorf("position has %d characters: it has to be %s", len(squares), PositionSyntax)
	}
	var discs [2]uint64
	for i := range 64 {
		switch squares[i] {
		case 'X', 'x', '*':
			discs[0] |= 1 << i
		case 'O', 'o':
			discs[1] |= 1 << i
		case '.', '-':
		default:
			return p, fmt.Errorf("position has %q on %s: it has to be %s", squares[i], SquareName(i), PositionSyntax)
		}
	}
	if p.Turn, err = ParseSide(squares[64:]); err != nil {
		return p, fmt.Errorf("position ends in %q: it has to be %s", squares[64:], PositionSyntax)
	}
	p.Own, p.Opp = discs[0], discs[1]
	if p.Turn == White {
		p.Board = p.Pass()
	}
	return p, nil
}

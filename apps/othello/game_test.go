package othello

import (
	"math/bits"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestGameExplains(t *testing.T) {
	g := NewGame()
	for square, want := range map[string]string{
		"d4":   "d4 is not a move: there is a disc on it; your moves are d3, c4, f5, e6",
		"a1":   "a1 is not a move: it turns nothing; your moves are d3, c4, f5, e6",
		"pass": "pass is not a move: who has a move has to make it; your moves are d3, c4, f5, e6",
	} {
		s, err := ParseSquare(square)
		if err != nil {
			s = Pass
		}
		if err := g.Play(s); err == nil || err.Error() != want {
			t.Errorf("%s: %v", square, err)
		}
	}
	g.positions[0] = Position{Board: Board{Own: 1}}
	if err := g.Play(5); err == nil || err.Error() != "f1 is not a move: black has none" {
		t.Error(err)
	}
	if err := g.Play(Pass); err == nil {
		t.Error("a pass in a game that is over")
	}
}

// A whole game forwards, and back again move by move.
func TestGameUndo(t *testing.T) {
	r := seeded(t)
	for range 50 {
		g := NewGame()
		var seen []Position
		for p := g.Position(); !p.Over(); p = g.Position() {
			move := Pass
			if moves := p.Moves(); moves != 0 {
				seen = append(seen, p)
				for range r.IntN(bits.OnesCount64(moves)) {
					moves &= moves - 1
				}
				move = bits.TrailingZeros64(moves)
			}
			if err := g.Play(move); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range slices.Backward(seen) {
			if !g.Undo(func(Side) bool { return true }) || g.Position() != want {
				t.Fatalf("got %v, want %v", g.Position(), want)
			}
		}
		if g.Undo(func(Side) bool { return true }) || !reflect.DeepEqual(g.Moves(), []int{}) {
			t.Fatal("there is a move before the first")
		}
	}
}

// What one side takes back includes the other's answer, and a side that has not moved has nothing to take back.
func TestGameUndoOfOneSide(t *testing.T) {
	g := NewGame()
	white := func(s Side) bool { return s == White }
	for _, square := range []string{"d3", "c3", "c4"} {
		if s, err := ParseSquare(square); err != nil || g.Play(s) != nil {
			t.Fatal(square)
		}
	}
	if !g.Undo(white) || len(g.Moves()) != 1 || g.Position().Turn != White || g.Undo(white) {
		t.Errorf("%v is left", g.Moves())
	}
}

func TestPositionText(t *testing.T) {
	start := "...........................OX......XO........................... X"
	if got := StartPosition().String(); got != start {
		t.Errorf("the start is %s", got)
	}
	r := seeded(t)
	for i := range 200 {
		p := Position{Board: arbitrary(r), Turn: i%2 == 0}
		text := p.String()
		stars := strings.NewReplacer("X", "*", "O", "o", ".", "-").Replace(text[:8]) + "\n" + text[8:]
		for _, s := range []string{text, stars} {
			if got, err := ParsePosition(s); err != nil || got != p {
				t.Fatalf("%q is %v (%v)", s, got, err)
			}
		}
	}
	for text, want := range map[string]string{
		"":                            "position has 0 characters: it has to be 64 squares",
		start + "X":                   "position has 66 characters",
		start[:64] + "?":              `position ends in "?"`,
		"?" + start[1:]:               "position has '?' on a1",
		strings.Repeat("é", 32) + "X": "position has 'Ã' on a1",
	} {
		if p, err := ParsePosition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v, want %s", text, p, err, want)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add(StartPosition().String())
	f.Add(strings.Repeat("- ", 64) + "white")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePosition(text)
		if err != nil {
			return
		}
		if again, err := ParsePosition(p.String()); err != nil || again != p || p.Own&p.Opp != 0 {
			t.Errorf("%q is %v, and then %v (%v)", text, p, again, err)
		}
	})
}

func TestSquares(t *testing.T) {
	for square := range 64 {
		if got, err := ParseSquare(SquareName(square)); err != nil || got != square {
			t.Errorf("%s is %d (%v), not %d", SquareName(square), got, err, square)
		}
	}
	if s, err := ParseSquare("D3"); err != nil || s != 19 || SquareName(Pass) != "pass" || SquareName(None) != "-" {
		t.Errorf("D3 is %d (%v)", s, err)
	}
	for _, name := range []string{"", "d", "d9", "i1", "d0", "dd", "33", "d3x", "\x013"} {
		if s, err := ParseSquare(name); err == nil {
			t.Errorf("%q is %d", name, s)
		}
	}
}

// A study's positions are such that a game reaches, and have a move; its percentiles are of the times.
func TestTime(t *testing.T) {
	r := seeded(t)
	boards := make([]Board, 50)
	for i := range boards {
		boards[i] = MidGame(r)
		if discs := 64 - boards[i].Empty(); boards[i].Moves() == 0 || discs < 16 || discs > 48 || boards[i].Own&boards[i].Opp != 0 {
			t.Fatalf("%+v is none", boards[i])
		}
	}
	timing, err := Time(t.Context(), boards, 2)
	if err != nil || len(timing.Times) != 50 || timing.Nodes < 150 || !slices.IsSorted(timing.Times) {
		t.Fatalf("%+v, %v", timing, err)
	}
	for p, rank := range map[float64]int{0: 0, 2: 0, 2.1: 1, 50: 24, 99: 49, 100: 49} {
		if got := timing.Percentile(p); got != timing.Times[rank] {
			t.Errorf("percentile %v is %v, not %v", p, got, timing.Times[rank])
		}
	}
	if m := timing.Mean(); m < timing.Times[0] || m > timing.Times[49] {
		t.Errorf("mean %v", m)
	}
}

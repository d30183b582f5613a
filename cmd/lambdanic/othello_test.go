package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/shlex"

	"github.com/lambdanic/lambdanic/apps/othello"
)

// othelloRun runs `lambdanic othello` on an input. What it says to the player and what a program reads are apart.
func othelloRun(t *testing.T, input string, args ...string) (out, said string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := root()
	cmd.SetIn(strings.NewReader(input))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append([]string{"othello"}, args...))
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// inOrder checks that text has the parts, one after another.
func inOrder(t *testing.T, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("%q is missing in its place in\n%s", p, text)
		}
		rest = after
	}
}

func TestOthelloDialogue(t *testing.T) {
	out, _, err := othelloRun(t, "d4\na1\nx9\nundo\nhelp\nD3\nc3\n\nundo\nboard\nquit\nd3\n", "--two")
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, out,
		"    a b c d e f g h\n", "  3 . . . + . . . .\n  4 . . + O X . . .\n  5 . . . X O + . .\n  6 . . . . + . . .\n", "black (X) 2, white (O) 2",
		"black> d4 is not a move: there is a disc on it; your moves are d3, c4, f5, e6\n",
		"black> a1 is not a move: it turns nothing; your moves are d3, c4, f5, e6\n",
		`black> "x9" is no square`, "`help` names what else",
		"black> there is no move of yours to take back\n",
		"black> d3     put a disc on d3",
		"black> ", "  3 . . + X + . . .\n", "black (X) 4, white (O) 1",
		"white> ", "  3 . + O X . . . .\n", "black (X) 3, white (O) 3",
		"black> black> ", "  3 . . + X + . . .\n", // a line without anything, and undo
		"white> ", "  3 . . + X + . . .\n", // board
		"white> the game is left\n",
	)
	if strings.Contains(out, "\x1b") {
		t.Error("colours off a terminal")
	}
}

// The program answers, and undo takes its answer back as well.
func TestOthelloAgainstProgram(t *testing.T) {
	out, _, err := othelloRun(t, "hint\nd3\nundo\nundo\nc4\n", "--depth", "2")
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, out, "black> ", "black> ", "white plays ", "black> ", "black (X) 2, white (O) 2", "black> there is no move of yours", "black> ", "white plays ",
		"black> \nthe game is left\n")
	if !regexp.MustCompile(`black> [a-h][1-8] \([+-]\d+\)\n`).MatchString(out) {
		t.Errorf("no hint in\n%s", out)
	}
	out, _, err = othelloRun(t, "undo\n", "--depth", "2", "--colour", "white")
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, out, "black (X) 2, white (O) 2", "black plays ", "white> there is no move of yours to take back\n")
}

// Whoever tries all squares again and again plays a whole game, whose record is one by the rules.
func TestOthelloWholeGame(t *testing.T) {
	for _, args := range [][]string{{"--depth", "1"}, {"--depth", "2", "--colour", "white"}, {"--depth", "2", "--two"}} {
		input := ""
		for range 70 { // each line is a square: those that are no moves are refused
			for square := range 64 {
				input += othello.SquareName((square*29)%64) + "\n"
			}
		}
		out, said, err := othelloRun(t, input, append(args, "--json")...)
		var r othelloResult
		if err != nil || json.Unmarshal([]byte(out), &r) != nil || !r.Over {
			t.Fatalf("%v: %q, %v", args, out, err)
		}
		game := othello.NewGame()
		for _, name := range r.Moves {
			square := othello.Pass
			if name != "pass" {
				if square, err = othello.ParseSquare(name); err != nil {
					t.Fatal(err)
				}
			}
			if err := game.Play(square); err != nil {
				t.Fatal(err)
			}
		}
		p := game.Position()
		if !p.Over() || p.String() != r.Position || r.Black+r.White != 64-p.Empty() || (r.Winner == "black") != (r.Black > r.White) {
			t.Errorf("%v: %+v", args, r)
		}
		inOrder(t, said, "the game is over: ")
	}
}

// A game that is left because the command ends says so at once, though it waits for a line that never comes.
func TestOthelloEndsWhileItWaits(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); r.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := root()
	cmd.SetIn(r)
	cmd.SetOut(onPrompt(cancel))
	cmd.SetArgs([]string{"othello"})
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// onPrompt is called when black is asked for a move.
type onPrompt func()

func (f onPrompt) Write(b []byte) (int, error) {
	if string(b) == "black> " {
		f()
	}
	return len(b), nil
}

func TestOthelloSearch(t *testing.T) {
	const position = "...........................XO.....XXXO.....OOO.................. O"
	p, err := othello.ParsePosition(position)
	if err != nil {
		t.Fatal(err)
	}
	want := othello.Minimax(p.Board, 4)
	for _, args := range [][]string{{}, {"--distributed", "3"}, {"--distributed", "5", "--transport", "queues"}} {
		out, _, err := othelloRun(t, "", append([]string{"search", position, "--depth", "4", "--json"}, args...)...)
		var got othelloFound
		if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Value != int(want.Value) || got.Position != position || got.Depth != 4 || got.Seconds <= 0 {
			t.Fatalf("%v: %s (%v), want %+v", args, out, err, want)
		}
		if distributed := len(args) > 0; distributed != (got.Hosts > 0) || distributed && (got.Best != othello.SquareName(want.Best) || got.Nodes != want.Nodes) {
			t.Errorf("%v: %+v, want %+v", args, got, want)
		}
	}
}

// What the end of a game is worth is said in discs.
func TestOthelloSearchOfTheEnd(t *testing.T) {
	for position, want := range map[string]string{
		"XO" + strings.Repeat(".", 62) + "X":  "3 c1 black wins by 3 2",
		"XO" + strings.Repeat(".", 62) + "O":  "3 pass black wins by 3 3",
		"X" + strings.Repeat(".", 63) + "O":   "3 - black wins by 1 1",
		"X.O" + strings.Repeat(".", 61) + "O": "3 - +0 1",
	} {
		out, _, err := othelloRun(t, "", "search", position, "--depth", "3")
		if got := strings.Join(strings.Fields(out), " "); err != nil || !strings.HasPrefix(got, "DEPTH BEST VALUE NODES TIME "+want+" ") {
			t.Errorf("%s: %s (%v), want %s", position, got, err, want)
		}
	}
}

func TestOthelloPerft(t *testing.T) {
	for want, args := range map[uint64][]string{390216: {"--depth", "8"}, 3005288: {"--depth", "9"}, 3005320: {"--depth", "9", "--pass-free"}} {
		out, _, err := othelloRun(t, "", append([]string{"perft", "--json"}, args...)...)
		var got othelloCount
		if err != nil || json.Unmarshal([]byte(out), &got) != nil || got.Positions != want || got.PassFree != slices.Contains(args, "--pass-free") {
			t.Errorf("%v: %s (%v), want %d", args, out, err, want)
		}
	}
}

func TestOthelloBench(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "othello.svg")
	out, _, err := othelloRun(t, "", "bench", "--depth", "3", "--positions", "20", "--json", "--plot", plot)
	var list []othelloTiming
	if err != nil || json.Unmarshal([]byte(out), &list) != nil || len(list) != 3 {
		t.Fatalf("%s (%v)", out, err)
	}
	for i, l := range list {
		// The hosts take what the simulator says, at depth 3 within 5 % of the authors' 10.27 µs.
		if i == 2 && (l.LNICP99NS < 9757 || l.LNICP99NS > 10783 || l.PaperRatio != 0) {
			t.Errorf("%+v", l)
		}
		if l.Depth != i+1 || l.Searches != 20 || l.P50NS <= 0 || l.Ratio != float64(l.P99NS)/float64(l.LNICP99NS) || l.P99NS < l.P50NS || i > 0 && l.Nodes <= list[i-1].Nodes {
			t.Errorf("%+v", l)
		}
	}
	if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), "2,500 hosts") {
		t.Errorf("the plot: %v, %.100s", err, svg)
	}
	out, _, err = othelloRun(t, "", "bench", "--depth", "7", "--positions", "1", "--csv")
	if lines := strings.Split(out, "\n"); err != nil || len(lines) != 9 || !strings.HasSuffix(lines[5], ",30") || !strings.HasSuffix(lines[7], ",-,-,-") {
		t.Errorf("%s (%v)", out, err)
	}
}

func TestOthelloRefuses(t *testing.T) {
	for want, args := range map[string][]string{
		"--depth 0: it has to be from 1 to 120":      {"--depth", "0"},
		"--depth 121: it has to be from 1 to 120":    {"search", "--depth", "121"},
		"--depth -1: it has to be":                   {"perft", "--depth", "-1"},
		`--colour: "green" is no side`:               {"--colour", "green"},
		"two":                                        {"--two", "--colour", "black"},
		"position has 3 characters: it has to be 64": {"search", "XO."},
		"--distributed: 0 hosts: there have to be":   {"search", "--distributed", "0"},
		"--distributed: 257 hosts":                   {"search", "--distributed", "257", "--transport", "queues"},
		`--transport "tcp": it has to be udp or`:     {"search", "--distributed", "2", "--transport", "tcp"},
		"--plot x.png: it is drawn as SVG":           {"bench", "--plot", "x.png"},
		"--positions 0: there have to be":            {"bench", "--positions", "0"},
		"write `lambdanic othello perft [POSITION]":  {"perft", "a", "b"},
		`unknown command "chess"`:                    {"chess"},
	} {
		if out, _, err := othelloRun(t, "", args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q, %v, want %s", args, out, err, want)
		}
	}
}

// Every command of the README runs.
func TestOthelloREADME(t *testing.T) {
	text, err := os.ReadFile("../../apps/othello/README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^lambdanic othello ?(.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 10 {
		t.Fatalf("only %d commands", len(commands))
	}
	for _, c := range commands {
		words, err := shlex.Split(c[1])
		if err != nil {
			t.Fatal(err)
		}
		if out, _, err := othelloRun(t, "quit\n", words...); err != nil || out == "" {
			t.Errorf("lambdanic othello %s: %q, %v", c[1], out, err)
		}
	}
}

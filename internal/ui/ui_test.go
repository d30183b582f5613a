package ui

import (
	"bytes"
	"strings"
	"testing"
)

func TestTableKeepsTerminalsSafe(t *testing.T) {
	var b bytes.Buffer
	if err := Table(&b, []string{"NAME", "REASON"}, [][]string{{"web", "a\x1b]0;b\x07\nc\u009bd"}}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.ContainsAny(text, "\x1b\x07\u009b") || strings.Count(text, "\n") != 2 {
		t.Errorf("%q", text)
	}
}

func TestNoColourAndNoProgressOffTerminal(t *testing.T) {
	var b bytes.Buffer
	if got := Colour(&b, Red, "x"); got != "x" {
		t.Errorf("%q", got)
	}
	Progress(&b, "waiting")()
	if b.Len() != 0 {
		t.Errorf("%q", b.String())
	}
}

package compiler

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The shell itself prints the words that it was given.
func TestShellWordsAreWords(t *testing.T) {
	words := []string{"", "-o", "/a b/clang", "it's", `$HOME "x" \y`, "`id`", "*;&|<>#~", "line\nline"}
	out, err := exec.Command("/bin/sh", "-c", "printf '%s\\0' "+shellWords(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
		t.Errorf("got %q, want %q", got, words)
	}
}

package seed

import (
	"fmt"
	"strings"
	"testing"
)

// logged is a test whose log can be read.
type logged struct {
	testing.TB
	text strings.Builder
}

func (l *logged) Logf(format string, args ...any) { fmt.Fprintf(&l.text, format, args...) }

func choose(t *testing.T, s uint64) {
	saved := *chosen
	t.Cleanup(func() { *chosen = saved })
	*chosen = s
}

func TestSameNumbersUnlessAsked(t *testing.T) {
	choose(t, 1)
	if a, b := Rand(t).Uint64(), Rand(t).Uint64(); a != b {
		t.Errorf("two runs begin with %d and %d", a, b)
	}
	choose(t, 0)
	if a, b := Rand(t).Uint64(), Rand(t).Uint64(); a == b {
		t.Errorf("two random runs begin with %d", a)
	}
}

// What the log of a random run names gives the same numbers again.
func TestLogNamesTheSeed(t *testing.T) {
	choose(t, 0)
	l := &logged{TB: t}
	first := Rand(l).Uint64()
	var s uint64
	if _, err := fmt.Sscanf(l.text.String(), "-seed %d", &s); err != nil || s == 0 {
		t.Fatalf("log %q: %v", l.text.String(), err)
	}
	choose(t, s)
	if again := Rand(t).Uint64(); again != first {
		t.Errorf("seed %d begins with %d, then with %d", s, first, again)
	}
}

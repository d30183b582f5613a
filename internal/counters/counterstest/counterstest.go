// Package counterstest checks documents of counters.
package counterstest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// Documented has README.md list the counters, in order.
func Documented(t *testing.T, counters []api.Counter) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Counters\n")
	var want, got []string
	for _, c := range counters {
		want = append(want, fmt.Sprintf("| `%s` | %s |", c.Name, c.Help))
	}
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("README.md has %q, want %q", got, want)
	}
}

package sourcefilter

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestCountersDocs has README.md list the counters, in order.
func TestCountersDocs(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Counters\n")
	var want, got []string
	for _, c := range counters {
		want = append(want, fmt.Sprintf("| `%s` | %s |", c.name, c.help))
	}
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) || len(counters) != int(FilterSfVerdictSF_VERDICTS) {
		t.Errorf("README.md has %q, want %q", got, want)
	}
}

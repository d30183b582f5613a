package ikernels

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An example is a server that averages numbers, before and after it got an ikernel.
type example struct {
	language      string
	run           []string
	before, after string    // what runs
	sources       [2]string // of both
}

var examples = []example{
	{"C", nil, "average", "average_ikernel", [2]string{"c/examples/average.c", "c/examples/average_ikernel.c"}},
	{"Python", []string{"python3", "-W", "error"}, "python/examples/average.py", "python/examples/average_ikernel.py",
		[2]string{"python/examples/average.py", "python/examples/average_ikernel.py"}},
	{"Node.js", []string{"node"}, "node/dist/examples/average.js", "node/dist/examples/average-ikernel.js",
		[2]string{"node/examples/average.ts", "node/examples/average-ikernel.ts"}},
}

func (e example) command(program string) []string {
	if e.run == nil {
		return []string{filepath.Join(built, program)}
	}
	return append(append([]string(nil), e.run...), filepath.Join(clients, program))
}

// TestLines counts the lines by which the examples differ, as docs/sockets.md has them.
func TestLines(t *testing.T) {
	docs, err := os.ReadFile("../../docs/sockets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		added, removed := differ(t, filepath.Join(clients, e.sources[0]), filepath.Join(clients, e.sources[1]))
		row := fmt.Sprintf("| %s | [before](../client/%s) | [after](../client/%s) | %d | %d |\n", e.language, e.sources[0], e.sources[1], added, removed)
		if !strings.Contains(string(docs), row) {
			t.Errorf("docs/sockets.md lacks %q", row)
		}
		if added > 20 {
			t.Errorf("%s: an application needs %d more lines, want 20 at most", e.language, added)
		}
	}
}

// differ counts the lines that another version of a file has, and those that it has no more.
func differ(t *testing.T, before, after string) (added, removed int) {
	t.Helper()
	out, _ := exec.Command("diff", before, after).Output() // fails where they differ
	for line := range strings.Lines(string(out)) {
		switch line[0] {
		case '>':
			added++
		case '<':
			removed++
		}
	}
	if added == 0 {
		t.Fatalf("%s and %s do not differ", before, after)
	}
	return added, removed
}

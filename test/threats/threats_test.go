// Package threats checks that docs/threat-model.md names tests that exist.
package threats

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// declared says whether a folder's tests have one of this name.
func declared(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^func ` + name + `\(`).Match(text) {
			return true
		}
	}
	return false
}

// Each promise names at least one test, and each of these exists.
func TestPromisesHaveTests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, promises, ok := strings.Cut(string(text), "\n## Promises\n")
	promises, _, ends := strings.Cut(promises, "\n## Not promised\n")
	if !ok || !ends {
		t.Fatal("docs/threat-model.md has no promises")
	}
	test := regexp.MustCompile("`([a-zA-Z0-9/]+)\\.((?:Test|Fuzz)[a-zA-Z0-9]+)`")
	rows, cases := 0, map[string]bool{}
	for line := range strings.Lines(promises) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[3]) == "tests" {
			continue
		}
		rows++
		found := test.FindAllStringSubmatch(cells[3], -1)
		if len(found) == 0 {
			t.Errorf("no test: %s", line)
		}
		for _, m := range found {
			cases[m[0]] = true
			if !declared(t, m[1], m[2]) {
				t.Errorf("%s: there is no such test", m[0])
			}
		}
	}
	if rows < 40 || len(cases) < 40 {
		t.Errorf("%d promises and %d tests: docs/threat-model.md has more", rows, len(cases))
	}
	t.Logf("%d promises, %d tests", rows, len(cases))
}

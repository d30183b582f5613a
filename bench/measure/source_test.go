package measure

import (
	"os"
	"testing"

	"github.com/lambdanic/lambdanic/bench/stand"
)

// A source that a suite edits leaves nothing behind.
func TestSourceIsRemoved(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	err := WithSource(Options{Config: stand.Config{Lambdas: "../../lambdas"}}, func(dir string) error { return Edit(dir, 1) })
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
}

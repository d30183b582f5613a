package measure

import (
	"errors"
	"strings"
	"testing"
)

// An unknown name is refused before any suite runs, and the error names the suites that exist.
func TestUnknownSuiteNamesTheKnown(t *testing.T) {
	suites := []Suite{{Name: "echo"}, {Name: "compiler", Benchmarks: []string{"build", "random"}}}
	for _, bad := range []string{"warp", "echo/build", "compiler/warp", "compiler/", ""} {
		err := Check(suites, []string{"echo", "compiler/random", bad})
		if !errors.Is(err, ErrUnknown) || !strings.HasSuffix(err.Error(), "echo, compiler, compiler/build, compiler/random") {
			t.Errorf("%q: got %v, want an error that lists the suites", bad, err)
		}
		if _, err := Run(t.Context(), suites, bad, Options{}); !errors.Is(err, ErrUnknown) {
			t.Errorf("run %q: %v", bad, err)
		}
	}
	if err := Check(suites, []string{"echo", "compiler", "compiler/build"}); err != nil {
		t.Error(err)
	}
}

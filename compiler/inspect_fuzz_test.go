package compiler_test

import (
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
)

// Reading and checking any bytes ends without a panic, and what is accepted is a lambda whose time is bounded.
func FuzzInspect(f *testing.F) {
	for _, name := range []string{"sent_elsewhere.c", "loop_walked.c", "constant_written.c", "lock_at_exit.c"} {
		object, _ := readHandmade(f, filepath.Join(handmadeDir, name))
		f.Add(object)
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		for _, inspect := range []func([]byte) (compiler.Contents, error){compiler.Inspect, compiler.InspectStage} {
			contents, err := inspect(object)
			if _, bounded := contents.Bounds[compiler.Program]; err == nil && !bounded {
				t.Errorf("accepted without a bound: %+v", contents)
			}
		}
	})
}

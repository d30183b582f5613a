// Package shortdir makes directories for tests that hold UNIX sockets: the path of one has at most 107 bytes (unix(7)), and
// testing.T.TempDir's may be longer.
package shortdir

import (
	"os"
	"testing"
)

// New makes a directory that goes with the test.
func New(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ln")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

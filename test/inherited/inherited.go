// Package inherited is for tests of what the processes that we start have open.
package inherited

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Open opens a file that every process inherits that is started before the test ends, and returns its path.
func Open(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inherited")
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY, 0) // no O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return path
}

// Has says whether a process has a file open.
func Has(t testing.TB, pid int, path string) bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && to == path {
			return true
		}
	}
	return false
}

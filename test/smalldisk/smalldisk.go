// Package smalldisk makes file systems for tests that fill them.
package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/test/shortdir"
)

// New mounts a tmpfs of that size, in tmpfs(5)'s words, which goes with the test. Without root, the test is skipped.
func New(t testing.TB, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounts a small file system: needs root")
	}
	dir := shortdir.New(t)
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A process that was killed may be on its way out still: the mount goes when it has gone.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// Fill writes a file until no byte is free, and returns what frees all of it again.
func Fill(t testing.TB, dir string) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<16); err == nil; _, err = f.Write(block) {
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

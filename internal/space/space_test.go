package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/smalldisk"
)

const mib = 1 << 20

func TestRequire(t *testing.T) {
	dir := smalldisk.New(t, "8m")
	for _, path := range []string{dir, filepath.Join(dir, "not", "there", "yet")} {
		if err := Require(path, 8*mib, "free some"); err != nil {
			t.Errorf("8 of 8 MiB: %v", err)
		}
		err := Require(path, 9*mib, "free some")
		if !errors.Is(err, ErrFull) || !Is(err) {
			t.Fatalf("9 of 8 MiB: %v", err)
		}
		for _, part := range []string{path, "8.0 MiB free", "needs 9.0 MiB", "free some"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("asking made %v (%v)", entries, err)
	}
	smalldisk.Fill(t, dir)
	if err := Require(dir, 1, "free some"); !Is(err) {
		t.Errorf("1 byte of none: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), []byte("x"), 0o600); !Is(fmt.Errorf("write: %w", err)) {
		t.Errorf("a write that meets the full disk says %v", err)
	}
}

// A tmpfs without a limit says that it has no blocks at all.
func TestRequireWithoutASize(t *testing.T) {
	if err := Require(smalldisk.New(t, "0"), 1<<30, "free some"); err != nil {
		t.Error(err)
	}
}

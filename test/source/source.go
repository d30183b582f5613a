// Package source finds the source tree that a test runs in.
package source

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Root is the directory of go.mod.
func Root(t testing.TB) string {
	t.Helper()
	mod, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find go.mod: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(mod)))
}

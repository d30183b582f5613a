//go:build !guest

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

func build() error {
	if out, err := exec.Command("make", "-C", root, "build").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// fillStore leaves the store empty: what is deployed gets compiled.
func (i *instance) fillStore() error { return nil }

// streams builds client/c/driver/streams.c.
func streams(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "streams")
	if out, err := exec.Command("make", "-C", filepath.Join(root, "client", "c"), "OUT="+dir, program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

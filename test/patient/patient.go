// Package patient gives the bundled lambdas such that a busy machine does not change what they answer.
package patient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// Lambdas copies the bundled lambdas from the directory where they are to one that goes with the test. There kv_client waits for its
// memcached longer than that may wait for a CPU.
func Lambdas(t testing.TB, from string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "kv_client", api.SpecFile)
	spec, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const timeout = "timeout: 100ms"
	if !strings.Contains(string(spec), timeout) {
		t.Fatalf("%s has no %q", file, timeout)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(spec), timeout, "timeout: 1m", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

package rig

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/test/source"
)

// ForTest builds lambda-host and opens a rig, whose instance is called name and this process's ID. It is closed with the test, which is
// skipped where nobody may make interfaces.
func ForTest(t *testing.T, name string) *Rig {
	t.Helper()
	return ForTestWith(t, name, Config{})
}

// ForTestWith is ForTest with more than the binary and the instance's name configured.
func ForTestWith(t *testing.T, name string, config Config) *Rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	root := source.Root(t)
	if out, err := exec.CommandContext(t.Context(), "make", "-C", filepath.Join(root, "host")).CombinedOutput(); err != nil {
		t.Fatalf("build lambda-host: %v\n%s", err, out)
	}
	config.LambdaHost = filepath.Join(root, "build", "lambda-host")
	config.Instance = fmt.Sprintf("%s%d", name, os.Getpid())
	config.Log = slog.New(slog.DiscardHandler)
	r, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the rig: %v", err)
		}
	})
	return r
}

// Package rigtest opens a rig for a test.
package rigtest

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/corpus/rig"
)

// Open builds lambda-host and opens a rig, whose instance is called name and this process's ID. It is closed with the test, which is
// skipped where nobody may make interfaces.
func Open(t *testing.T, name string) *rig.Rig {
	t.Helper()
	return OpenWith(t, name, rig.Config{})
}

// OpenWith is Open with more than the binary and the instance's name configured.
func OpenWith(t *testing.T, name string, config rig.Config) *rig.Rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	mod, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	if out, err := exec.CommandContext(t.Context(), "make", "-C", filepath.Join(root, "host")).CombinedOutput(); err != nil {
		t.Fatalf("build lambda-host: %v\n%s", err, out)
	}
	config.LambdaHost = filepath.Join(root, "build", "lambda-host")
	config.Instance = fmt.Sprintf("%s%d", name, os.Getpid())
	config.Log = slog.New(slog.DiscardHandler)
	r, err := rig.Open(t.Context(), config)
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

// Package measuretest has helpers for tests of suites.
package measuretest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/test/source"
)

// Options are for one round in this source tree. The test is skipped where it may not make interfaces.
func Options(t *testing.T) measure.Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF: run as root")
	}
	root := source.Root(t)
	host := filepath.Join(root, "build/lambda-host")
	if _, err := exec.LookPath(host); err != nil {
		t.Fatalf("%v: run make", err)
	}
	return measure.Options{
		Config: stand.Config{LambdaHost: host, Lambdas: filepath.Join(root, "lambdas")}, Rounds: 1, Progress: t.Output(),
	}
}

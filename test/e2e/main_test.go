// Package e2e drives the built binary as its users do: real interfaces, a real memcached, HTTP and the command line. Each
// test brings up an instance of its own and leaves nothing behind, which it checks.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	root   = must(filepath.Abs("../.."))
	binary = filepath.Join(root, "build", "lambdanic")
)

func TestMain(m *testing.M) {
	build := exec.Command("make", "-C", root, "build")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func must(s string, err error) string {
	if err != nil {
		panic(err)
	}
	return s
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
}

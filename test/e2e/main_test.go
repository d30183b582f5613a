// Package e2e drives the built binary as its users do: real interfaces, a real memcached, HTTP and the command line. Each
// test brings up an instance of its own and leaves nothing behind, which it checks.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var (
	root   = must(filepath.Abs("../.."))
	binary = filepath.Join(root, "build", "lambdanic")
)

func TestMain(m *testing.M) {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
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

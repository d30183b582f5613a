// Package linktest gives tests a pair.
package linktest

import (
	"os"
	"testing"

	"github.com/lambdanic/lambdanic/bench/link"
)

// New makes a pair that exists until the test ends.
func New(t *testing.T) *link.Pair {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF: run as root")
	}
	p, err := link.New(link.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Package seed gives randomised tests their random numbers: the same in every run, so that a change that fails them is to
// blame for it, and others by `go test PACKAGE -seed 0`, as tools/fuzz asks for.
package seed

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var chosen = flag.Uint64("seed", 1, "where the random numbers of tests begin; 0 begins anywhere")

// Rand gives a test numbers of its own. The log says how to have them again.
func Rand(t testing.TB) *rand.Rand {
	s := *chosen
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

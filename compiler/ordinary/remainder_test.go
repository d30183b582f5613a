package ordinary_test

import (
	"math/rand/v2"
	"testing"
)

func TestRemainder(t *testing.T) {
	r := put(t, "remainder")
	rng := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		agree(t, r, words(rng.Uint32()))
	}
}

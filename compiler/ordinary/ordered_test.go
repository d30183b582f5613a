package ordinary_test

import (
	"math/rand/v2"
	"testing"
)

func TestOrdered(t *testing.T) {
	r := put(t, "ordered")
	rng := rand.New(rand.NewPCG(9, 10))
	for range 100 {
		agree(t, r, words(rng.Uint32()))
	}
}

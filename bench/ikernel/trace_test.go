package ikernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lambdanic/lambdanic/bench/gen"
)

// TestZipf compares how often keys are drawn with the law, by χ² over ranges of ranks that are twice as long each time.
func TestZipf(t *testing.T) {
	const keys, draws, exponent = 1 << 12, 1 << 20, 0.99
	s, r := newSource(keys, exponent), rand.New(rand.NewPCG(1, 2))
	var drawn [13]float64
	for range draws {
		drawn[rangeOf(s.draw(r))]++
	}
	var want [13]float64
	sum := 0.0
	for rank := range uint32(keys) {
		p := math.Pow(float64(rank+1), -exponent)
		want[rangeOf(rank)] += p
		sum += p
	}
	chi := 0.0
	for i := range drawn {
		expected := want[i] / sum * draws
		chi += (drawn[i] - expected) * (drawn[i] - expected) / expected
	}
	if chi > 32.9 { // which 12 degrees of freedom exceed once in a thousand times; the seed is fixed
		t.Errorf("χ² is %.1f: %v", chi, drawn)
	}
}

// rangeOf numbers the ranges: rank 0, 1 to 2, 3 to 6, and so on.
func rangeOf(rank uint32) int { return int(math.Log2(float64(rank + 1))) }

// TestTrace finds the share of SETs in a trace, all its keys in range, and the most frequent one where the permutation puts it.
func TestTrace(t *testing.T) {
	const steps, keys = 1 << 16, 1 << 10
	sets, often := 0, map[gen.Step]int{}
	for _, s := range zipfSteps(1, steps, keys, 0.99, 0.1) {
		get := s &^ gen.Step(0).Set()
		if get >= keys {
			t.Fatalf("step %#x", s)
		}
		if s != get {
			sets++
		}
		often[get]++
	}
	if share := float64(sets) / steps; share < 0.09 || share > 0.11 {
		t.Errorf("%.3f of the steps are SETs, want 0.1", share)
	}
	for n, count := range often {
		if n != 0 && count >= often[0] {
			t.Errorf("key %d is asked for %d times, and the first %d times", n, count, often[0])
		}
	}
	if len(often) < keys*9/10 {
		t.Errorf("%d of %d keys are asked for", len(often), keys)
	}
}

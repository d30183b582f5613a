package ikernel

import (
	"math"
	"math/rand/v2"

	"github.com/lambdanic/lambdanic/bench/gen"
)

// A source draws keys by Zipf's law: the n-th is asked for in proportion to n^-exponent. It is an alias table (M. D. Vose, A Linear Algorithm for
// Generating Random Numbers with a Given Distribution, 1991): each key has a column, a part of which may belong to another one.
type source struct {
	own   []float64 // the part of each column that is its own
	alias []uint32  // whose the rest is
}

func newSource(keys int, exponent float64) *source {
	s := &source{own: make([]float64, keys), alias: make([]uint32, keys)}
	sum := 0.0
	for i := range s.own {
		s.own[i] = math.Pow(float64(i+1), -exponent)
		sum += s.own[i]
	}
	var small, large []uint32
	for i := range s.own {
		s.own[i] *= float64(keys) / sum
		if s.own[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		from, to := large[len(large)-1], small[len(small)-1]
		small = small[:len(small)-1]
		s.alias[to] = from
		s.own[from] -= 1 - s.own[to]
		if s.own[from] < 1 {
			large = large[:len(large)-1]
			small = append(small, from)
		}
	}
	for _, i := range append(small, large...) {
		s.own[i] = 1 // but for rounding
	}
	return s
}

// draw returns the rank of a key, from 0.
func (s *source) draw(r *rand.Rand) uint32 {
	column := r.Uint32N(uint32(len(s.own)))
	if r.Float64() < s.own[column] {
		return column
	}
	return s.alias[column]
}

// zipfSteps are a trace by Zipf's law over a power of two of keys, in which some requests are SETs. The keys that are asked for most are not those that
// were stored first.
func zipfSteps(seed uint64, steps, keys int, exponent, sets float64) []gen.Step {
	s, r := newSource(keys, exponent), rand.New(rand.NewPCG(seed, 0))
	all := make([]gen.Step, steps)
	for i := range all {
		all[i] = gen.Step(s.draw(r) * 0x9e37_79b1 & uint32(keys-1)) // a permutation: the factor is odd
		if r.Float64() < sets {
			all[i] = all[i].Set()
		}
	}
	return all
}

// uniformSteps are a trace that asks for all of a power of two of keys alike, in random order.
func uniformSteps(seed uint64, steps, keys int) []gen.Step {
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([]gen.Step, steps)
	for i := range all {
		all[i] = gen.Step(r.Uint32N(uint32(keys)))
	}
	return all
}

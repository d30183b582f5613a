package corpus_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/corpus"
	"github.com/lambdanic/lambdanic/compiler/corpus/rig"
	"github.com/lambdanic/lambdanic/compiler/corpus/rig/rigtest"
	"github.com/lambdanic/lambdanic/compiler/randomc"
)

// Every program of the corpus loads, and gives the vectors' replies on the NIC and as a process.
func TestTargets(t *testing.T) {
	programs, err := corpus.Programs()
	if err != nil {
		t.Fatal(err)
	}
	r := rigtest.Open(t, "corpus")
	for _, p := range programs {
		t.Run(p.Name, func(t *testing.T) {
			a, err := p.Build(t.Context(), compiler.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Check(t.Context(), a, p.Vectors); err != nil {
				t.Error(err)
			}
		})
	}
}

// lost are seeds of programs with so many ways through them that the verifier did not find their end where it walked through their
// loops: what the compiler charges instead is what they test.
var lost = []uint64{41, 42, 121, 139, 165, 184, 193, 265, 274, 389, 491, 611, 931}

// Random programs, of which almost all load, answer on the NIC what they answer as a process. Of the first thousand seeds, at most 20
// may be refused; of these few, one.
func TestRandomPrograms(t *testing.T) {
	seeds := slices.Clone(lost)
	for seed := range uint64(36) {
		seeds = append(seeds, seed)
	}
	if testing.Short() {
		seeds = seeds[:8]
	}
	r := rigtest.Open(t, "corpus")
	refused := 0
	for _, seed := range seeds {
		a, err := randomc.Build(t.Context(), seed)
		if err == nil {
			err = r.Compare(t.Context(), a, randomc.Requests(seed))
		}
		switch {
		case errors.Is(err, rig.ErrLoad):
			refused++
			t.Logf("seed %d: %v", seed, err)
		case err != nil:
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	if refused > 1 {
		t.Errorf("%d of %d do not load", refused, len(seeds))
	}
}

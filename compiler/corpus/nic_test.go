package corpus_test

import (
	"errors"
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

// Random programs, of which almost all load, answer on the NIC what they answer as a process.
func TestRandomPrograms(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 8
	}
	r := rigtest.Open(t, "corpus")
	refused := 0
	for seed := range seeds {
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
	if refused*20 > int(seeds) {
		t.Errorf("%d of %d do not load", refused, seeds)
	}
}

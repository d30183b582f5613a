package corpus_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/corpus"
	"github.com/lambdanic/lambdanic/test/randomc"
	"github.com/lambdanic/lambdanic/test/rig"
)

// Every program of the corpus loads, and gives the vectors' replies on the NIC and as a process.
func TestTargets(t *testing.T) {
	programs, err := corpus.Programs()
	if err != nil {
		t.Fatal(err)
	}
	r := rig.ForTest(t, "corpus")
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

// Programs with so many paths that the verifier did not find their end by walking their loops. They test that the compiler meters these loops
// instead. An earlier randomc wrote them, from the seeds in their names.
func TestLostPrograms(t *testing.T) {
	sources, err := filepath.Glob("testdata/lost/*.c")
	if err != nil || sources == nil {
		t.Fatal(sources, err)
	}
	if testing.Short() {
		sources = sources[:4]
	}
	r := rig.ForTest(t, "corpus")
	for _, file := range sources {
		seed, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(file), ".c"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a, err := randomc.BuildSource(t.Context(), string(source))
		if err == nil {
			err = r.Compare(t.Context(), a, randomc.Requests(seed))
		}
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Random programs answer the same on the NIC and as a process. Almost all load: of the first thousand seeds, at most 20 may be refused; of
// the few here, one.
func TestRandomPrograms(t *testing.T) {
	seeds := 24
	if testing.Short() {
		seeds = 4
	}
	r := rig.ForTest(t, "corpus")
	refused := 0
	for seed := range uint64(seeds) {
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
		t.Errorf("%d of %d do not load", refused, seeds)
	}
}

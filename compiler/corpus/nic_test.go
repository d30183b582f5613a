package corpus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/corpus"
	"github.com/lambdanic/lambdanic/compiler/corpus/rig"
	"github.com/lambdanic/lambdanic/compiler/randomc"
)

func openRig(t *testing.T) *rig.Rig {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", filepath.Join(root, "host")).CombinedOutput(); err != nil {
		t.Fatalf("build lambda-host: %v\n%s", err, out)
	}
	r, err := rig.Open(t.Context(), rig.Config{
		LambdaHost: filepath.Join(root, "build", "lambda-host"), Instance: fmt.Sprintf("corpus%d", os.Getpid()),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the rig: %v", err)
		}
	})
	return r
}

// Every program of the corpus loads, and gives the vectors' replies on the NIC and as a process.
func TestTargets(t *testing.T) {
	programs, err := corpus.Programs()
	if err != nil {
		t.Fatal(err)
	}
	r := openRig(t)
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
	r := openRig(t)
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

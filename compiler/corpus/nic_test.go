package corpus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/lambdanic/lambdanic/api"
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
			put(t, r, a)
			for i, v := range p.Vectors {
				want := rig.Answer{Type: api.TypeResponse, Payload: v.Out}
				for target, ask := range map[string]func([]byte) (rig.Answer, error){"NIC": r.AskNIC, "process": r.AskProcess} {
					if got, err := ask(v.In); err != nil || !got.Equal(want) {
						t.Errorf("vector %d on %s, %.60x: got %v, %v, want %v", i, target, []byte(v.In), got, err, want)
					}
				}
			}
		})
	}
}

// put puts an artifact in place for one test.
func put(t *testing.T, r *rig.Rig, a *compiler.Artifact) {
	t.Helper()
	if err := r.Put(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Remove(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
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
		err := compare(t, r, seed)
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

func compare(t *testing.T, r *rig.Rig, seed uint64) error {
	a, err := randomc.Build(t.Context(), seed)
	if err != nil {
		return err
	}
	if err := r.Put(t.Context(), a); err != nil {
		return err
	}
	for _, request := range randomc.Requests(seed) {
		n, errN := r.AskNIC(request)
		p, errP := r.AskProcess(request)
		if errN != nil || errP != nil || !n.Equal(p) {
			err = errors.Join(err, fmt.Errorf("request %x: NIC %v %w, process %v %w", request, n, errN, p, errP))
		}
	}
	return errors.Join(err, r.Remove(t.Context()))
}

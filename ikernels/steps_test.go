package ikernels

import (
	"errors"
	"maps"
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/xdp"
	"github.com/lambdanic/lambdanic/test/verifier"
)

// The verifier takes each ikernel's programs, and those of TCP sockets, in few steps: they are loaded while an application waits.
func TestSteps(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it loads programs")
	}
	const listening = "a socket that listens"
	all := maps.Clone(programs)
	all[listening] = loadStream
	all["a connection"] = func() (*ebpf.CollectionSpec, error) {
		spec, err := loadStream()
		if err == nil {
			forConnection(spec)
		}
		return spec, err
	}
	for name, load := range all {
		t.Run(name, func(t *testing.T) {
			spec, err := load()
			if err != nil {
				t.Fatal(err)
			}
			xdp.Untie(spec)
			coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
			if name == listening && errors.As(err, new(*ebpf.VerifierError)) {
				t.Skip("this kernel lets no ikernel have it: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer coll.Close()
			verifier.CheckSteps(t, coll.Programs)
		})
	}
}

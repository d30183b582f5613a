// Package load loads lambdas' programs into the kernel and pins them.
package load

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// ErrRefused says that this NIC does not run a lambda; the wrapped text says why.
var ErrRefused = errors.New("lambda refused")

// verifierLog has room for the verifier's log of most programs that it refuses. Without room the program is verified again, which may
// take half a minute.
const verifierLog = 4 << 20

// Collection loads an object file into the kernel, with these maps in place of its own of the same names. If the verifier refuses it,
// the error says why, at which line of the author's source, and what to change.
func Collection(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) (*ebpf.Collection, error) {
	xdp.Untie(spec)
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{
		MapReplacements: maps, Programs: ebpf.ProgramOptions{LogSizeStart: verifierLog},
	})
	if err == nil {
		return coll, nil
	}
	if o := diagnose.Explain(err, nil); o != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, o)
	}
	return nil, fmt.Errorf("load the program: %w", err)
}

type pinner interface{ Pin(path string) error }

// Pin pins p, replacing what an interrupted attempt left.
func Pin(p pinner, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make pin directory: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove stale pin: %w", err)
	}
	if err := p.Pin(path); err != nil {
		return fmt.Errorf("pin %s: %w", path, err)
	}
	return nil
}

// Unpin removes a pin. A missing pin is not an error.
func Unpin(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove pin: %w", err)
	}
	return nil
}

// Package load loads lambdas' programs into the kernel and pins them.
package load

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// ErrRefused says that a lambda is not one which this NIC will run; the wrapped text says why.
var ErrRefused = errors.New("lambda refused")

// verifierLog has room for what the verifier says of most programs that it refuses. For want of room it is asked again, and it may take
// half a minute to refuse one.
const verifierLog = 4 << 20

// Collection loads an object into the kernel, with these maps in place of its own of the same names. Where the verifier refuses it, the
// error says what it objects to, at which line of the author's, and what to change.
func Collection(spec *ebpf.CollectionSpec, maps map[string]*ebpf.Map) (*ebpf.Collection, error) {
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

// Pin pins in place of whatever an interrupted attempt left there.
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

// Unpin removes a pin. That there is none is no error.
func Unpin(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove pin: %w", err)
	}
	return nil
}

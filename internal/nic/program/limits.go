package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"
)

// isLimit says whether a map keeps what namespaces may do and what they did (bpf/share.h, bpf/admit.h). The NIC programs of a node share these maps.
func isLimit(name string) bool {
	return slices.Contains([]string{"ln_quotas", "ln_turns_taken", "ln_allowances", "ln_budgets", "ln_cpus"}, name)
}

// maps are some of a NIC program's, by their names in C.
type maps map[string]*ebpf.Map

func (m maps) close() {
	for _, m := range m {
		m.Close()
	}
}

// openLimits opens those limits that a half has, or makes and pins them.
func openLimits(spec *ebpf.CollectionSpec, dir string) (_ maps, err error) {
	limits := maps{}
	defer func() {
		if err != nil {
			limits.close()
		}
	}()
	for name, m := range spec.Maps {
		if !isLimit(name) {
			continue
		}
		if limits[name], err = openLimit(m, dir); err != nil {
			return nil, fmt.Errorf("open the map %s: %w", name, err)
		}
	}
	return limits, nil
}

// openLimit opens a map or makes it. One of another layout is of an earlier version, whose NIC programs are being replaced.
func openLimit(spec *ebpf.MapSpec, dir string) (*ebpf.Map, error) {
	m, err := ebpf.NewMapWithOptions(spec, ebpf.MapOptions{PinPath: dir})
	if !errors.Is(err, ebpf.ErrMapIncompatible) {
		return m, err
	}
	if err := os.Remove(filepath.Join(dir, spec.Name)); err != nil {
		return nil, err
	}
	return ebpf.NewMapWithOptions(spec, ebpf.MapOptions{PinPath: dir})
}

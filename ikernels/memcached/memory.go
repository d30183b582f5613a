package memcached

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// mapMemory maps all elements of an array into our memory. T is the map's value, or divides it.
func mapMemory[T any](m *ebpf.Map) ([]T, error) {
	size := int(m.MaxEntries()) * int(m.ValueSize())
	page := unix.Getpagesize()
	mem, err := unix.MmapPtr(m.FD(), 0, nil, uintptr((size+page-1)/page*page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s into memory: %w", m, err)
	}
	return unsafe.Slice((*T)(mem), size/int(unsafe.Sizeof(*new(T)))), nil
}

// unmap ends what mapMemory did. No mapping is not an error.
func unmap[T any](mapped []T) error {
	if mapped == nil {
		return nil
	}
	size, page := len(mapped)*int(unsafe.Sizeof(mapped[0])), unix.Getpagesize()
	return unix.MunmapPtr(unsafe.Pointer(&mapped[0]), uintptr((size+page-1)/page*page))
}

// setVariables gives the constants of a BPF object their values.
func setVariables(spec *ebpf.CollectionSpec, values map[string]any) error {
	for name, value := range values {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// graceCommand is MEMBARRIER_CMD_GLOBAL of membarrier(2).
const graceCommand = 1

// grace returns when every NIC program that runs now has ended: membarrier waits until all processors have been through a quiescent state
// of the kernel's read-copy-update, which a program in a soft interrupt is not.
func grace() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, graceCommand, 0, 0); errno != 0 {
		return fmt.Errorf("wait for the NIC programs that run: membarrier: %w: the kernel must not run with nohz_full", errno)
	}
	return nil
}

// replace has a BPF object use a map that exists.
func replace(name string, m *ebpf.Map) *ebpf.CollectionOptions {
	return &ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{name: m}}
}

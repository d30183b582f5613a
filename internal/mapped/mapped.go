// Package mapped has BPF arrays in our memory: programs and we see each other's stores at once.
package mapped

import (
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Array maps all elements of an array, which must have been made for it (BPF_F_MMAPABLE). T is the array's value, or divides it.
func Array[T any](m *ebpf.Map) ([]T, error) {
	size := uintptr(m.MaxEntries()) * uintptr(m.ValueSize())
	mem, err := unix.MmapPtr(m.FD(), 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %v into memory: %w", m, err)
	}
	return unsafe.Slice((*T)(mem), size/unsafe.Sizeof(*new(T))), nil
}

// Unmap ends what Array did. No mapping is not an error.
func Unmap[T any](array []T) error {
	if array == nil {
		return nil
	}
	return unix.MunmapPtr(unsafe.Pointer(&array[0]), uintptr(len(array))*unsafe.Sizeof(array[0]))
}

package compiler

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf"
)

// The kernel says what its maps take (map_mem_usage in include/linux/bpf.h). Our estimate must not be lower, nor charge authors for much
// more.
func TestMapMemoryIsTheKernels(t *testing.T) {
	const fixed = 8 << 10 // of the map itself, and of rounding up to a page
	for _, m := range []ebpf.MapSpec{
		{Type: ebpf.Array, KeySize: 4, ValueSize: 1, MaxEntries: 100_000},
		{Type: ebpf.Array, KeySize: 4, ValueSize: 100_001, MaxEntries: 1},
		{Type: ebpf.Hash, KeySize: 1, ValueSize: 1, MaxEntries: 100_000},
		{Type: ebpf.Hash, KeySize: 13, ValueSize: 1001, MaxEntries: 5000},
		{Type: ebpf.LRUHash, KeySize: 4, ValueSize: 8, MaxEntries: 65_536},
		{Type: ebpf.LRUHash, KeySize: 4, ValueSize: 8, MaxEntries: 65_537},
	} {
		t.Run(fmt.Sprintf("%v of %d", m.Type, m.MaxEntries), func(t *testing.T) {
			made, err := ebpf.NewMap(&m)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = made.Close() }()
			info, err := made.Info()
			if err != nil {
				t.Fatal(err)
			}
			takes, ok := info.Memlock()
			if !ok {
				t.Fatal("the kernel does not say what the map takes")
			}
			if got := mapMemory(&m); got+fixed < takes || got > takes+takes/3 {
				t.Errorf("counted as %d bytes, takes %d", got, takes)
			}
		})
	}
}

package nic

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler"
)

// Of a lambda's memory, no two CPUs may get one part.
func TestMemoryHasAPartForEachCPU(t *testing.T) {
	ordinary := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{compiler.MemorySection: {}}}
	if err := checkCPUs(ordinary, compiler.CPUs); err != nil {
		t.Error(err)
	}
	if err := checkCPUs(ordinary, compiler.CPUs+1); !errors.Is(err, ErrRefused) {
		t.Errorf("with one CPU too many: %v", err)
	}
	if err := checkCPUs(&ebpf.CollectionSpec{}, 1000); err != nil {
		t.Errorf("without such memory: %v", err)
	}
}

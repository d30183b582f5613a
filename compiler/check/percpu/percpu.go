// Package percpu gives each CPU its own copy of a lambda's per-CPU memory. A program is compiled without a number of CPUs. In its code,
// each number that depends on it is the address of a record in the section Section, which Fit replaces when the program is loaded:
//
//	struct { int64 fixed; uint64 each; }	fixed + each * copies
//
// Fit also sizes the maps: .data.NAME is compiled with one copy at its end, and grows for each further copy by the number in the section
// Section.NAME. The number of copies is a power of two, so that a mask of the CPU's number selects its copy.
package percpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/api"
)

// Section holds the records (compiler/passes/percpu.cpp). Its name stays: compiled artifacts contain it.
const Section = ".rodata.parts"

const recordSize = 16

// ErrRecords says that a program's records are malformed.
var ErrRecords = errors.New("per-CPU memory is not described as the compiler describes it: build the lambda again")

// ErrMemory says that a lambda's memory has no room for a copy for each CPU.
var ErrMemory = errors.New("too much per-CPU memory")

// Fit adapts the programs of spec to a number of CPUs.
func Fit(spec *ebpf.CollectionSpec, cpus int) error {
	count := uint64(1) << bits.Len(uint(max(cpus, 1)-1))
	total := uint64(0)
	for name, m := range spec.Maps {
		if !strings.HasPrefix(name, Section+".") {
			continue
		}
		size, err := grow(spec, name, m, count, uint64(api.MaxMemory)-total)
		if err != nil {
			return err
		}
		total += size
		delete(spec.Maps, name)
	}
	numbers, err := content(spec.Maps[Section])
	if err != nil {
		return err
	}
	for _, p := range spec.Programs {
		if err := fill(p.Instructions, numbers, count); err != nil {
			return fmt.Errorf("program %s: %w", p.Name, err)
		}
	}
	delete(spec.Maps, Section)
	return nil
}

// content returns the bytes of a section of records, nil if there is no such section.
func content(m *ebpf.MapSpec) ([]byte, error) {
	if m == nil {
		return nil, nil
	}
	if len(m.Contents) == 1 {
		if data, ok := m.Contents[0].Value.([]byte); ok {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%w: %s holds no records", ErrRecords, m.Name)
}

// grow gives a map, which has one copy, count copies, and returns its new size, at most room.
func grow(spec *ebpf.CollectionSpec, name string, sizes *ebpf.MapSpec, count, room uint64) (uint64, error) {
	data, err := content(sizes)
	if err != nil {
		return 0, err
	}
	m := spec.Maps[".data"+strings.TrimPrefix(name, Section)]
	if m == nil || m.Type != ebpf.Array || m.MaxEntries != 1 || len(data) != 8 {
		return 0, fmt.Errorf("%w: %s", ErrRecords, name)
	}
	each := binary.NativeEndian.Uint64(data)
	if each > uint64(m.ValueSize) {
		return 0, fmt.Errorf("%w: %s has a copy of %d bytes, in a map of %d", ErrRecords, name, each, m.ValueSize)
	}
	more := each * (count - 1) // at most 2^32 * 2^31
	if uint64(m.ValueSize)+more > room {
		return 0, fmt.Errorf("%w: with %d bytes for each of %d CPUs, it takes more than %d: make local arrays and the heap smaller",
			ErrMemory, each, count, api.MaxMemory)
	}
	for i := range m.Contents {
		if data, ok := m.Contents[i].Value.([]byte); ok {
			m.Contents[i].Value = append(data[:len(data):len(data)], make([]byte, more)...)
		}
	}
	m.ValueSize += uint32(more)
	m.Key, m.Value = nil, nil // the BTF types have the old size
	return uint64(m.ValueSize), nil
}

// fill replaces the addresses of records by numbers.
func fill(insns asm.Instructions, records []byte, count uint64) error {
	for i := range insns {
		ins := &insns[i]
		if !ins.IsLoadFromMap() || ins.Reference() != Section {
			continue
		}
		at := uint64(ins.Constant) >> 32
		if ins.Src != asm.PseudoMapValue || at%recordSize != 0 || at+recordSize > uint64(len(records)) {
			return fmt.Errorf("%w: instruction %d names no record", ErrRecords, i)
		}
		fixed, each := binary.NativeEndian.Uint64(records[at:]), binary.NativeEndian.Uint64(records[at+8:])
		ins.Src, ins.Constant = 0, int64(fixed+each*count)
		*ins = ins.WithReference("")
	}
	return nil
}

// Package counters reads what NIC programs count.
package counters

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
)

// Sum adds up what each CPU has counted: the words of the only value of a per-CPU array.
func Sum(m *ebpf.Map) ([]uint64, error) {
	cpus, err := m.LookupBytes(uint32(0))
	if err != nil {
		return nil, fmt.Errorf("read the counters in %v: %w", m, err)
	}
	sums := make([]uint64, m.ValueSize()/8)
	for i := 0; 8*i < len(cpus); i++ {
		sums[i%len(sums)] += binary.NativeEndian.Uint64(cpus[8*i:])
	}
	return sums, nil
}

// A Counter is what users see of a verdict, by which a NIC program counts.
type Counter[Verdict ~uint32] struct {
	Verdict    Verdict
	Name, Help string
}

// Describe returns counters without their values.
func Describe[Verdict ~uint32](all []Counter[Verdict]) (described []api.Counter) {
	for _, c := range all {
		described = append(described, api.Counter{Name: c.Name, Help: c.Help})
	}
	return described
}

// Read returns counters with what a program has counted in a per-CPU array, whose value has a word for each verdict.
func Read[Verdict ~uint32](m *ebpf.Map, all []Counter[Verdict]) ([]api.Counter, error) {
	sums, err := Sum(m)
	if err != nil {
		return nil, err
	}
	read := Describe(all)
	for i, c := range all {
		read[i].Value = sums[c.Verdict]
	}
	return read, nil
}

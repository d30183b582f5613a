package metering

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// FuelMap is the map in which programs find their budget: a section of the object file, with two numbers.
const FuelMap = ".data.fuel"

const (
	offsetBudget = 0
	offsetZero   = 8
	fuelSize     = 16
)

// checkMap refuses a fuel map whose shape does not fit the offsets above.
func checkMap(spec *ebpf.CollectionSpec) error {
	m := spec.Maps[FuelMap]
	if m == nil || m.Type == ebpf.Array && m.KeySize == 4 && m.ValueSize == fuelSize && m.MaxEntries == 1 && m.Pinning == ebpf.PinNone {
		return nil
	}
	return fmt.Errorf("%w: the map %s is not an array of one element of %d bytes", ErrUnbounded, FuelMap, fuelSize)
}

// Fill gives the programs of spec, which Check accepted, their budget for one run. The map is read-only for them, but not frozen: the
// verifier would take the budget in a frozen map for a constant, and walk through every iteration that it pays for.
func Fill(spec *ebpf.CollectionSpec, budget time.Duration) error {
	m := spec.Maps[FuelMap]
	if m == nil {
		return nil
	}
	if err := checkMap(spec); err != nil {
		return err
	}
	if budget < 0 || budget > math.MaxInt64/PerMicrosecond {
		return fmt.Errorf("a budget of %v is out of range", budget)
	}
	value := make([]byte, fuelSize)
	binary.NativeEndian.PutUint64(value[offsetBudget:], uint64(budget.Nanoseconds())*PerMicrosecond/1000)
	m.Flags |= unix.BPF_F_RDONLY_PROG
	m.Contents = []ebpf.MapKV{{Key: uint32(0), Value: value}}
	// The library would write the section's variables over its contents.
	maps.DeleteFunc(spec.Variables, func(_ string, v *ebpf.VariableSpec) bool { return v.SectionName == FuelMap })
	return nil
}

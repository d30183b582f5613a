package compiler_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A lambda with variables of all kinds in its memory: shared, per CPU, per request; and values that the stack has no room for.
const perCPUSource = `#include <stdlib.h>
static int shared[3] = { 1, 2, 3 };
static int *const which[] = { &shared[0], &shared[1], &shared[2] };
` + ordinaryEntry + `{
	uint8_t in[64];
	uint64_t at, n = lambda_read(headers, &at, sizeof(at));
	uint32_t *block = malloc(4);

	if (n != sizeof(at) || !block)
		return RETURN_FAULT;
	*block = *which[at % 3];
	*(volatile uint8_t *)at = 1;
	memset(in, 0, sizeof(in));
	in[at % 64] = *block;
	return lambda_write(headers, in, sizeof(in));
}`

// A lambda's memory has a copy for each CPU that the machine may have, and its pointers reach the last copy's end and no farther.
func TestCopyForEachCPU(t *testing.T) {
	sizes := map[int]uint32{}
	for _, cpus := range []int{1, 2, 3, 16, 17, 64, 1024} {
		lambda := loadOrdinaryFor(t, "#include <string.h>\n"+perCPUSource, cpus)
		size := lambda.memory.ValueSize()
		sizes[cpus] = size
		ask := func(at uint32) (uint32, []byte) {
			return lambda.run(t, binary.NativeEndian.AppendUint64(nil, uint64(at)))
		}
		const spare = 2048
		end := size - spare
		want := make([]byte, 64)
		want[(end-1)%64] = byte((end-1)%3 + 1)
		if verdict, out := ask(end - 1); verdict != verdictForward || !bytes.Equal(out, want) {
			t.Errorf("%d CPUs, last byte: verdict %d, %x", cpus, verdict, out)
		}
		if verdict, _ := ask(end); verdict != verdictBounds {
			t.Errorf("%d CPUs, behind the last byte: verdict %d", cpus, verdict)
		}
	}
	each := sizes[2] - sizes[1]
	for cpus, count := range map[int]uint32{3: 4, 16: 16, 17: 32, 64: 64, 1024: 1024} {
		if want := sizes[1] + each*(count-1); each < 16384 || sizes[cpus] != want {
			t.Errorf("memory for %d CPUs takes %d bytes, want %d", cpus, sizes[cpus], want)
		}
	}
}

// onCPU runs f on one CPU.
func onCPU(t *testing.T, cpu int, f func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	only.Set(cpu)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
}

// usableCPUs are those that the test may run on.
func usableCPUs(t *testing.T) (list []int) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; len(list) < set.Count(); cpu++ {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list
}

// What a request puts on the heap is in the copy of the CPU that it runs on, and in no other copy.
func TestCopiesAreApart(t *testing.T) {
	lambda := loadOrdinary(t, "#include <stdlib.h>\n"+ordinaryEntry+`{
	uint8_t *block = malloc(64);

	if (!block || lambda_read(headers, block, 64) != 64)
		return RETURN_FAULT;
	return lambda_write(headers, block, 64);
}`)
	at := map[int]int{} // where each CPU's block is, by the CPU
	for _, cpu := range usableCPUs(t) {
		request := bytes.Repeat([]byte{0x80 + byte(cpu)}, 64)
		onCPU(t, cpu, func() { lambda.run(t, request) })
		memory, err := lambda.memory.LookupBytes(uint32(0))
		if err != nil {
			t.Fatal(err)
		}
		at[cpu] = bytes.Index(memory, request)
		for other, where := range at {
			if where < 0 || !bytes.Equal(memory[where:where+64], bytes.Repeat([]byte{0x80 + byte(other)}, 64)) {
				t.Errorf("CPU %d's block is not in its memory at %d after CPU %d's request", other, where, cpu)
			}
		}
	}
}

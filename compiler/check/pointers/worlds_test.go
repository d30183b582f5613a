package pointers

import (
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

// A world is a thread on its own CPU. A run takes memory from the CPU's caches and its stack from the thread, so a run in one world
// has none of its memory where a run in the other world has it.
type world struct{ runs chan func() }

// A pair of worlds. Both are there all the time, so that neither takes over the other's memory.
type pair [2]world

func worlds(t *testing.T) *pair {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	w := &pair{}
	for i := range w {
		cpu := 0
		for !allowed.IsSet(cpu) && allowed.Count() > 0 {
			cpu++
		}
		if allowed.Count() > 1 {
			allowed.Clear(cpu)
		}
		w[i].runs = make(chan func())
		go w[i].live(cpu)
		t.Cleanup(func() { close(w[i].runs) })
	}
	return w
}

// live never unlocks its thread, so the thread ends with it.
func (w world) live(cpu int) {
	runtime.LockOSThread()
	var one unix.CPUSet
	one.Set(cpu)
	_ = unix.SchedSetaffinity(0, &one) // the addresses say whether this was enough
	for run := range w.runs {
		run()
	}
}

// A run is what a run leaves: all that can be seen from outside, and where its memory lay.
type run struct {
	traces []byte
	places [4]uint64 // packet, context, stack, element
}

// same tells whether a program leaves the same traces in both worlds. It is not ok if the verifier refuses the program.
func (w *pair) same(t *testing.T, p asm.Instructions) (same, ok bool) {
	t.Helper()
	var loaded [2]*ebpf.Collection
	for i := range loaded { // both stay until the end, so that each has an element of its own
		c, err := loadNoting(p)
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			return false, false
		} else if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		loaded[i] = c
	}
	for range 1000 { // another process may have freed the packet's page on the other CPU in between
		first, second := w[0].run(t, loaded[0]), w[1].run(t, loaded[1])
		if !slices.ContainsFunc([]int{0, 1, 2, 3}, func(i int) bool { return first.places[i] == second.places[i] }) {
			return bytes.Equal(first.traces, second.traces), true
		}
	}
	t.Fatal("the kernel gives both worlds the same memory: this test needs two CPUs")
	return false, false
}

// loadNoting makes a program first note where its memory lies.
func loadNoting(p asm.Instructions) (*ebpf.Collection, error) {
	note := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.StoreImm(asm.RFP, -4, 0, asm.Word)}
	lookup := func(m string) {
		note = append(note, asm.LoadMapPtr(asm.R1, 0).WithReference(m), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "out"))
	}
	lookup("array")
	note = append(note, asm.Mov.Reg(asm.R7, asm.R0))
	lookup("places")
	note = append(note,
		asm.LoadMem(asm.R1, asm.R6, 0, asm.Word), asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
		asm.StoreMem(asm.R0, 8, asm.R6, asm.DWord), asm.StoreMem(asm.R0, 16, asm.RFP, asm.DWord), asm.StoreMem(asm.R0, 24, asm.R7, asm.DWord),
		asm.Mov.Reg(asm.R1, asm.R6))
	spec := &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			"array": array, "hash": hash, "places": {Type: ebpf.Array, KeySize: 4, ValueSize: 32, MaxEntries: 1},
		},
		Programs: map[string]*ebpf.ProgramSpec{
			"lambda": {Name: "lambda", Type: ebpf.XDP, Instructions: append(note, p...), License: "GPL"},
		},
	}
	return ebpf.NewCollection(spec.Copy())
}

func (w world) run(t *testing.T, c *ebpf.Collection) (r run) {
	t.Helper()
	options := ebpf.RunOptions{Data: make([]byte, 64), DataOut: make([]byte, 128)}
	var code uint32
	var err error
	done := make(chan struct{})
	w.runs <- func() {
		defer close(done)
		if err = c.Maps["array"].Put(uint32(0), make([]byte, array.ValueSize)); err == nil { // an earlier run may have changed it
			code, err = c.Programs["lambda"].Run(&options)
		}
	}
	<-done
	if err != nil {
		t.Fatal(err)
	}
	element, err := c.Maps["array"].LookupBytes(uint32(0))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Maps["places"].Lookup(uint32(0), &r.places); err != nil {
		t.Fatal(err)
	}
	r.traces = append(append([]byte{byte(code), byte(code >> 8), byte(code >> 16), byte(code >> 24)}, element...), options.DataOut...)
	return r
}

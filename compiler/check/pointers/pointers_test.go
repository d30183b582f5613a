package pointers

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

var (
	array = &ebpf.MapSpec{Name: "array", Type: ebpf.Array, KeySize: 4, ValueSize: 64, MaxEntries: 1}
	hash  = &ebpf.MapSpec{Name: "hash", Type: ebpf.Hash, KeySize: 8, ValueSize: 8, MaxEntries: 8}
	maps  = map[string]*ebpf.MapSpec{"array": array, "hash": hash}
)

// element puts the address of array's element into r0, the program's context into r6, and both ends of the packet into r7 and r8.
var element = asm.Instructions{
	asm.Mov.Reg(asm.R6, asm.R1),
	asm.LoadMem(asm.R7, asm.R6, 0, asm.Word),
	asm.LoadMem(asm.R8, asm.R6, 4, asm.Word),
	asm.StoreImm(asm.RFP, -4, 0, asm.Word),
	asm.LoadMapPtr(asm.R1, 0).WithReference("array"),
	asm.Mov.Reg(asm.R2, asm.RFP),
	asm.Add.Imm(asm.R2, -4),
	asm.FnMapLookupElem.Call(),
	asm.JEq.Imm(asm.R0, 0, "out"),
}

var out = asm.Instructions{asm.Mov.Imm(asm.R0, 2).WithSymbol("out"), asm.Return()}

func keep(r asm.Register) asm.Instruction { return asm.StoreMem(asm.R0, 0, r, asm.DWord) }

func program(body ...asm.Instruction) asm.Instructions {
	var p asm.Instructions
	for _, part := range []asm.Instructions{element, body, out} {
		p = append(p, part...)
	}
	return p
}

// The kernel accepts all of these programs from root, also those that leak an address: hence the check.
func accept(t *testing.T, p asm.Instructions) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	spec := &ebpf.CollectionSpec{Maps: maps, Programs: map[string]*ebpf.ProgramSpec{
		"lambda": {Name: "lambda", Type: ebpf.XDP, Instructions: p, License: "GPL"},
	}}
	c, err := ebpf.NewCollection(spec.Copy())
	if err != nil {
		t.Fatalf("the kernel refuses it: %v", err)
	}
	c.Close()
}

func verdict(p asm.Instructions) error {
	_, err := Check(&ebpf.CollectionSpec{Maps: maps}, &ebpf.ProgramSpec{Name: "lambda", Instructions: p})
	return err
}

func refuse(t *testing.T, p asm.Instructions) {
	t.Helper()
	p = withFunctions(p)
	accept(t, p)
	if err := verdict(p); !errors.Is(err, ErrLeak) {
		t.Errorf("got %v", err)
	}
}

func pass(t *testing.T, p asm.Instructions) {
	t.Helper()
	p = withFunctions(p)
	accept(t, p)
	if err := verdict(p); err != nil {
		t.Error(err)
	}
}

func TestLeaksAreRefused(t *testing.T) {
	for name, p := range map[string]asm.Instructions{
		"the packet's address":       program(keep(asm.R7)),
		"half of it":                 program(asm.StoreMem(asm.R0, 0, asm.R7, asm.Word)),
		"the context's address":      program(keep(asm.R6)),
		"the stack's address":        program(keep(asm.RFP)),
		"the element's own address":  program(keep(asm.R0)),
		"a map's address":            program(asm.LoadMapPtr(asm.R1, 0).WithReference("array"), keep(asm.R1)),
		"a variable's address":       program(asm.LoadMapValue(asm.R1, 0, 8).WithReference("array"), keep(asm.R1)),
		"in the packet":              program(asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, 8), asm.JGT.Reg(asm.R1, asm.R8, "out"), asm.StoreMem(asm.R7, 0, asm.R6, asm.DWord)),
		"by an atomic operation":     program(asm.Mov.Reg(asm.R1, asm.R6), atomic(asm.FetchAdd, asm.R0, asm.R1, 0)),
		"its lower half":             program(asm.Mov.Reg32(asm.R1, asm.R7), keep(asm.R1)),
		"taken from zero":            program(asm.Mov.Imm(asm.R1, 0), asm.Sub.Reg32(asm.R1, asm.R7), keep(asm.R1)),
		"as a distance from another": program(asm.Mov.Reg(asm.R1, asm.R0), asm.Sub.Reg(asm.R1, asm.R7), keep(asm.R1)),
		"by a comparison":            program(asm.LoadImm(asm.R1, 0x7fff888000000000, asm.DWord), asm.JGT.Reg(asm.R7, asm.R1, "out"), asm.StoreImm(asm.R0, 0, 1, asm.Word)),
		"by a comparison at once":    program(asm.JGT.Imm(asm.R7, 4096, "out"), asm.StoreImm(asm.R0, 0, 1, asm.Word)),
		"by a comparison of a half":  program(asm.JGT.Imm32(asm.R7, 4096, "out"), asm.StoreImm(asm.R0, 0, 1, asm.Word)),
		"by bits in common":          program(asm.JSet.Reg(asm.R7, asm.R8, "out"), asm.StoreImm(asm.R0, 0, 1, asm.Word)),
		"put aside and taken back":   program(asm.StoreMem(asm.RFP, -16, asm.R7, asm.DWord), asm.LoadMem(asm.R1, asm.RFP, -16, asm.DWord), keep(asm.R1)),
		"as an element": program(
			asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord), asm.StoreImm(asm.RFP, -24, 0, asm.Word), asm.StoreImm(asm.RFP, -20, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, 0).WithReference("hash"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -24),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -16), asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call()),
		"as a key": program(
			asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord),
			asm.LoadMapPtr(asm.R1, 0).WithReference("hash"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16), asm.FnMapDeleteElem.Call()),
		"by a helper's number": program(
			asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R3, asm.R0), asm.Mov.Imm(asm.R4, 8), asm.Mov.Reg(asm.R5, asm.R6),
			asm.FnCsumDiff.Call()),
		"on one of two paths": program(
			asm.LoadMem(asm.R1, asm.R0, 8, asm.DWord), asm.JEq.Imm(asm.R1, 7, "join"), asm.Mov.Reg(asm.R1, asm.R6), keep(asm.R1).WithSymbol("join")),
		"through a function": program(
			asm.Mov.Reg(asm.R9, asm.R0), asm.Mov.Reg(asm.R1, asm.R7), asm.Call.Label("same"), asm.StoreMem(asm.R9, 0, asm.R0, asm.DWord), asm.Ja.Label("out")),
		"by a function's caller's frame": program(
			asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord), asm.Mov.Reg(asm.R9, asm.R0),
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -16), asm.Call.Label("read"), asm.StoreMem(asm.R9, 0, asm.R0, asm.DWord), asm.Ja.Label("out")),
	} {
		t.Run(name, func(t *testing.T) {
			refuse(t, p)
		})
	}
}

// withFunctions adds the functions that a program calls.
func withFunctions(p asm.Instructions) asm.Instructions {
	for _, f := range []asm.Instructions{
		{asm.Mov.Reg(asm.R0, asm.R1).WithSymbol("same"), asm.Return()},
		{asm.LoadMem(asm.R0, asm.R1, 0, asm.DWord).WithSymbol("read"), asm.Return()},
		{asm.Mov.Imm(asm.R2, 0).WithSymbol("clear"), asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord), asm.Mov.Imm(asm.R0, 0), asm.Return()},
		{asm.Mov.Imm(asm.R2, -1).WithSymbol("shrink"), asm.FnXdpAdjustTail.Call(), asm.Mov.Imm(asm.R0, 0), asm.Return()},
		{asm.LoadMem(asm.R0, asm.RFP, -256, asm.DWord).WithSymbol("leftovers"), asm.Return()},
		{asm.Mov.Reg(asm.R0, asm.R1).WithSymbol("forget"), asm.Mov.Imm(asm.R0, 0), asm.Return()},
		{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord).WithSymbol("clear_there"), asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.R2, 0, asm.R1, asm.DWord),
			asm.Mov.Imm(asm.R0, 0), asm.Return(),
		},
		{asm.StoreMem(asm.R2, 0, asm.R1, asm.DWord).WithSymbol("tell"), asm.Mov.Imm(asm.R0, 0), asm.Return()},
	} {
		if slices.ContainsFunc(p, func(ins asm.Instruction) bool { return ins.IsFunctionCall() && ins.Reference() == f[0].Symbol() }) {
			p = append(p, f...)
		}
	}
	return p
}

func TestHarmlessPointersAreNot(t *testing.T) {
	for name, p := range map[string]asm.Instructions{
		"how long the packet is": program(asm.Sub.Reg(asm.R8, asm.R7), keep(asm.R8)),
		"of the lower halves":    program(asm.Sub.Reg32(asm.R8, asm.R7), keep(asm.R8)),
		"what is in the packet": program(
			asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, 8), asm.JGT.Reg(asm.R1, asm.R8, "out"), asm.LoadMem(asm.R1, asm.R7, 0, asm.DWord), keep(asm.R1)),
		"put aside, taken back and used": program(
			asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord), asm.LoadMem(asm.R1, asm.RFP, -16, asm.DWord), asm.StoreImm(asm.R1, 0, 1, asm.Word)),
		"a slot that has a number again": program(
			asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord), asm.StoreImm(asm.RFP, -16, 1, asm.Word), asm.StoreImm(asm.RFP, -12, 1, asm.Word),
			asm.LoadMem(asm.R1, asm.RFP, -16, asm.Word), keep(asm.R1)),
		"a key beside what is put aside": program(
			asm.StoreMem(asm.RFP, -16, asm.R6, asm.DWord), asm.StoreImm(asm.RFP, -24, 0, asm.Word), asm.StoreImm(asm.RFP, -20, 0, asm.Word),
			asm.LoadMapPtr(asm.R1, 0).WithReference("hash"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -24), asm.FnMapDeleteElem.Call()),
		"an element found or not": program(asm.JNE.Imm(asm.R0, 0, "out")),
	} {
		t.Run(name, func(t *testing.T) {
			pass(t, p)
		})
	}
}

package metering

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// either runs then or skips it; both paths go on at the label "skip".
func either(then ...asm.Instruction) asm.Instructions {
	return slices.Concat(one(asm.JEq.Imm(asm.R1, 3, "skip")), then)
}

// A register that is a pointer into the stack on one path, and something else on the other, could overwrite the fuel.
func TestPointersOfTwoPathsAreRefused(t *testing.T) {
	number, pointer := asm.Mov.Imm(asm.R4, 0), asm.Mov.Reg(asm.R4, asm.R10)
	moved := one(pointer, asm.Add.Reg(asm.R4, asm.R5))
	store := asm.StoreMem(asm.R4, testSlot, asm.R1, asm.DWord).WithSymbol("skip")
	for name, body := range map[string]asm.Instructions{
		"a pointer, or a number":           slices.Concat(one(pointer), either(number)),
		"a number, or a pointer":           slices.Concat(one(number), either(pointer)),
		"a moved pointer, or a number":     slices.Concat(moved, either(number)),
		"a number, or a moved pointer":     slices.Concat(one(number), either(moved...)),
		"a pointer, or what is not known":  slices.Concat(one(pointer), either(asm.FnJiffies64.Call(), asm.Mov.Reg(asm.R4, asm.R0))),
		"what is taken from a pointer":     one(asm.Mov.Imm(asm.R4, 0), asm.Sub.Reg(asm.R4, asm.R10)),
		"half a pointer":                   one(asm.Mov.Reg32(asm.R4, asm.R10)),
		"a pointer beyond the stack":       one(pointer, asm.Add.Imm(asm.R4, 8)),
		"a pointer below it":               one(pointer, asm.Add.Imm(asm.R4, -520)),
		"a pointer, 32 bits of it moved":   one(pointer, asm.Add.Imm32(asm.R4, 0)),
		"a pointer, a number taken off it": one(pointer, asm.Sub.Imm(asm.R4, 0)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(collection(within(append(body, store)...)))
			if !errors.Is(err, ErrUnbounded) || !strings.Contains(err.Error(), "not followed") {
				t.Errorf("accepted, or %v", err)
			}
		})
	}
}

// A register that once pointed into the stack may be stored through when it holds another pointer.
func TestFormerPointersAreAccepted(t *testing.T) {
	pointer := asm.Mov.Reg(asm.R4, asm.R10)
	table := asm.LoadMapValue(asm.R4, 0, 0).WithReference("table")
	for name, body := range map[string]asm.Instructions{
		"a map's value":    one(pointer, table),
		"what is loaded":   one(pointer, asm.LoadMem(asm.R4, asm.R1, 0, asm.DWord)),
		"a helper's":       one(pointer, asm.FnJiffies64.Call(), asm.Mov.Reg(asm.R4, asm.R0)),
		"what was fetched": one(table, asm.Mov.Reg(asm.R0, asm.R10), asm.CmpXchg.Mem(asm.R4, asm.R1, asm.DWord, 0), asm.Mov.Reg(asm.R4, asm.R0)),
	} {
		t.Run(name, func(t *testing.T) {
			for i := range body {
				if op := body[i].OpCode.AtomicOp(); op != asm.InvalidAtomic {
					body[i].Constant = int64(op >> 8)
				}
			}
			if _, err := Check(collection(within(append(body, asm.StoreMem(asm.R4, testSlot, asm.R1, asm.DWord))...))); err != nil {
				t.Error(err)
			}
		})
	}
}

// A helper weighs what it copies: what a constant says, else the most that there can be.
func TestSizesThatAreNotKnownWeighAll(t *testing.T) {
	const all = packetMax * unitsPerNs / bytesPerNs
	fetch := asm.FetchAdd.Mem(asm.R10, asm.R4, asm.DWord, -16)
	fetch.Constant = int64(asm.FetchAdd >> 8)
	exchange := asm.CmpXchg.Mem(asm.R10, asm.R1, asm.DWord, -16)
	exchange.Constant = int64(asm.CmpXchg >> 8)
	eight := asm.Mov.Imm(asm.R4, 8)
	for name, c := range map[string]struct {
		size  asm.Instructions
		known bool
	}{
		"a constant":               {one(eight), true},
		"a constant of 32 bits":    {one(asm.Mov.Imm32(asm.R4, 8)), true},
		"a copy of one":            {one(asm.Mov.Imm(asm.R5, 8), asm.Mov.Reg(asm.R4, asm.R5)), true},
		"the same on both paths":   {slices.Concat(one(eight), either(eight)), true},
		"another on one path":      {slices.Concat(one(eight), either(asm.Mov.Imm(asm.R4, 9000))), false},
		"another, copied":          {slices.Concat(one(eight), either(asm.Mov.Reg(asm.R4, asm.R7))), false},
		"a helper's result":        {one(asm.Mov.Imm(asm.R0, 8), asm.FnGetPrandomU32.Call(), asm.Mov.Reg(asm.R4, asm.R0)), false},
		"a large constant":         {one(eight, asm.LoadImm(asm.R4, 1<<40, asm.DWord)), false},
		"what is loaded":           {one(eight, asm.LoadMem(asm.R4, asm.R10, -16, asm.DWord)), false},
		"what is fetched":          {one(eight, fetch), false},
		"what is exchanged":        {one(asm.Mov.Imm(asm.R0, 8), exchange, asm.Mov.Reg(asm.R4, asm.R0)), false},
		"a constant that grew":     {one(eight, asm.LSh.Imm(asm.R4, 9)), false},
		"a constant and a number":  {one(eight, asm.Add.Reg(asm.R4, asm.R7)), false},
		"a constant, negative":     {one(asm.Mov.Imm(asm.R4, -1)), false},
		"a constant, sign kept":    {one(eight, asm.Instruction{OpCode: asm.MovSX32.Op(asm.RegSource), Dst: asm.R4, Src: asm.R7}), false},
		"a map, which is no size":  {one(eight, asm.LoadMapPtr(asm.R4, 0).WithReference("table")), false},
		"an address, which is not": {one(eight, asm.LoadMapValue(asm.R4, 0, 0).WithReference("table")), false},
	} {
		t.Run(name, func(t *testing.T) {
			call := one(asm.Mov.Reg(asm.R1, asm.R6).WithSymbol("skip"), asm.Mov.Imm(asm.R2, 0), asm.Mov.Reg(asm.R3, asm.R10), asm.Add.Imm(asm.R3, -64), asm.FnXdpLoadBytes.Call())
			bounds, err := Check(collection(join(one(asm.Mov.Reg(asm.R6, asm.R1)), c.size, call, leave("out"))))
			if err != nil {
				t.Fatal(err)
			}
			if debt := bounds["lambda"].Debt; c.known != (debt < all) {
				t.Errorf("weighs %d", debt)
			}
		})
	}
}

// A helper weighs the map that it works on; if that is not known, the largest.
func TestMapsThatAreNotKnownWeighMost(t *testing.T) {
	small, large := asm.LoadMapPtr(asm.R1, 0).WithReference("small"), asm.LoadMapPtr(asm.R1, 0).WithReference("table")
	for name, c := range map[string]struct {
		table asm.Instructions
		known bool
	}{
		"a small one":          {one(small), true},
		"a large one":          {one(small, large), false},
		"a small one, after":   {one(large, small), true},
		"one of two":           {slices.Concat(one(small), one(asm.JEq.Imm(asm.R7, 3, "skip"), large)), false},
		"a copy":               {one(asm.LoadMapPtr(asm.R7, 0).WithReference("small"), asm.Mov.Reg(asm.R1, asm.R7)), true},
		"what is loaded":       {one(small, asm.LoadMem(asm.R1, asm.R10, -16, asm.DWord)), false},
		"a value, no map":      {one(small, asm.LoadMapValue(asm.R1, 0, 0).WithReference("small")), false},
		"a small one, changed": {one(small, asm.Add.Imm(asm.R1, 8)), false},
	} {
		t.Run(name, func(t *testing.T) {
			call := one(asm.Mov.Reg(asm.R2, asm.R10).WithSymbol("skip"), asm.Mov.Reg(asm.R3, asm.R10), asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call())
			spec := collection(join(one(asm.Mov.Imm(asm.R7, 1)), c.table, call, leave("out")))
			spec.Maps["small"] = &ebpf.MapSpec{Name: "small", Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1}
			bounds, err := Check(spec)
			if err != nil {
				t.Fatal(err)
			}
			if debt := bounds["lambda"].Debt; c.known != (debt < 1<<16*unitsPerNs/bytesPerNs) {
				t.Errorf("weighs %d", debt)
			}
		})
	}
}

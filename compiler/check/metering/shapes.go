package metering

import (
	"math"

	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
)

// mayGoto is BPF_JMP | BPF_JCOND (include/uapi/linux/bpf.h).
const mayGoto = asm.OpCode(asm.JumpClass) | asm.OpCode(asm.JCOND)

// A charge takes cost from the fuel.
type charge struct {
	first int // index of its first instruction
	cost  uint64
}

const chargeLength = 5

var (
	loadSlot  = asm.LoadMemOp(asm.DWord)
	storeSlot = asm.StoreMemOp(asm.DWord)
	addImm    = asm.Add.Op(asm.ImmSource)
	ifSpent   = asm.JSLT.Op(asm.ImmSource)
)

// findShapes finds init, charges and loads of the unknown zero, and refuses whatever else touches may_goto or the fuel.
func (g *graph) findShapes() error {
	for i := range g.Insns {
		if g.Insns[i].OpCode == mayGoto {
			if err := g.findCharge(i); err != nil {
				return err
			}
		}
	}
	filled := false
	for i := range g.Insns {
		ins := &g.Insns[i]
		if !ins.IsLoadFromMap() || ins.Reference() != FuelMap {
			continue
		}
		switch offset := fuelOffset(ins); {
		case !g.loadsFuel(i):
			return g.refuse(i, "the fuel's map is put to another use")
		case offset == offsetZero:
		case offset != offsetBudget || !g.metered() || filled:
			return g.refuse(i, "the fuel's map is put to another use")
		default:
			if err := g.checkInit(i); err != nil {
				return err
			}
			filled = true
		}
	}
	if g.metered() && !filled {
		return g.refuse(0, "the fuel is charged, but nowhere filled")
	}
	return nil
}

// findCharge expects a charge that ends with the instruction at index last.
func (g *graph) findCharge(last int) error {
	first := last - chargeLength + 1
	if first < g.funcs[0].From || last >= g.funcs[0].To {
		return g.refuse(last, "an unmetered loop (may_goto)")
	}
	c := g.Insns[first : last+1]
	load, add, store, spent := &c[0], &c[1], &c[2], &c[3]
	r := load.Dst
	switch {
	case load.OpCode != loadSlot || load.Src != asm.R10 || !isSlot(load.Offset),
		add.OpCode != addImm || add.Dst != r || add.Offset != 0 || add.Constant >= 0 || add.Constant < math.MinInt32,
		store.OpCode != storeSlot || store.Dst != asm.R10 || store.Src != r || store.Offset != load.Offset,
		spent.OpCode != ifSpent || spent.Dst != r || spent.Constant != 0:
		return g.refuse(last, "an unmetered loop (may_goto)")
	case g.metered() && load.Offset != g.slot:
		return g.refuse(first, "a charge to a second slot of fuel")
	}
	if err := g.whole(first, last, first); err != nil {
		return err
	}
	g.slot, g.ours[first+2] = load.Offset, true
	g.within[last] = len(g.charges)
	g.charges = append(g.charges, charge{first: first, cost: uint64(-add.Constant)})
	return nil
}

// isSlot tells whether eight bytes at the offset from r10 are a stack slot.
func isSlot(offset int16) bool { return offset >= -512 && offset <= -8 && offset%8 == 0 }

// checkInit expects init to begin at index i.
func (g *graph) checkInit(i int) error {
	for k := range i {
		ins := &g.Insns[k]
		if ins.OpCode.JumpOp() == asm.Exit || flow.Transfers(ins) && !ins.IsFunctionCall() {
			return g.refuse(i, "the fuel is filled where it need not be")
		}
	}
	if i+2 >= g.funcs[0].To {
		return g.refuse(i, "the fuel's map is put to another use")
	}
	store := &g.Insns[i+2]
	if store.OpCode != storeSlot || store.Dst != asm.R10 || store.Src != g.Insns[i].Dst || store.Offset != g.slot {
		return g.refuse(i, "the fuel's map is put to another use")
	}
	g.ours[i+2] = true
	return g.whole(0, i+2, -1)
}

// whole refuses jumps into init or a charge, except to the instruction at index entry.
func (g *graph) whole(first, last, entry int) error {
	for k := first; k <= last; k++ {
		if g.Jumped[k] && k != entry {
			return g.refuse(k, "a jump into what fills or charges the fuel")
		}
	}
	return nil
}

// loadsFuel expects two loads at index i: of an address in the fuel's map, then of the value at that address.
func (g *graph) loadsFuel(i int) bool {
	if i+1 >= len(g.Insns) || g.Insns[i].Src != asm.PseudoMapValue {
		return false
	}
	r, load := g.Insns[i].Dst, &g.Insns[i+1]
	return load.OpCode == loadSlot && load.Dst == r && load.Src == r && load.Offset == 0 && !g.Jumped[i+1]
}

func fuelOffset(ins *asm.Instruction) uint64 { return uint64(ins.Constant) >> 32 }

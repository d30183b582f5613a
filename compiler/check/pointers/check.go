package pointers

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/helper"
)

// check refuses an instruction that leaks an address, given what is known before it.
func (c *checker) check(i int, s *state) error {
	ins := &c.Insns[i]
	ok := true
	switch class := ins.OpCode.Class(); {
	case ins.IsBuiltinCall():
		ok = c.mayCall(ins, s)
	case isExit(ins):
		ok = c.owner[i] > 0 || !s.reg[asm.R0].may(addresses)
	case class.IsJump():
		ok = mayCompare(ins, s)
	case class.IsALU():
		ok = mayCompute(ins, s)
	case class == asm.LdXClass:
		ok = mayLoad(ins, s)
	case ins.OpCode.Mode() == asm.AtomicMode:
		ok = mayUpdate(ins, s)
	case class == asm.StXClass:
		ok = mayStore(ins, s)
	}
	if !ok {
		return ErrLeak
	}
	return nil
}

func wide(ins *asm.Instruction) bool {
	return ins.OpCode.Class() == asm.ALU64Class || ins.OpCode.Class() == asm.JumpClass
}

func mayCompute(ins *asm.Instruction, s *state) bool {
	dst, src := operands(ins, s)
	switch op := ins.OpCode.ALUOp(); {
	case op == asm.Mov && ins.Offset == 0 && wide(ins):
		return true
	case op == asm.Mov, op == asm.MovSX8, op == asm.MovSX16, op == asm.MovSX32: // of fewer bytes, or sign-extended
		return !src.may(addresses)
	case op == asm.Swap: // has no other operand
		return !dst.may(addresses)
	case !dst.may(addresses) && !src.may(addresses):
		return true
	case dst.may(context|table) || src.may(context|table): // addresses near them are not followed
		return false
	case op == asm.Add:
		return wide(ins) && !(dst.may(addresses) && src.may(addresses))
	case op == asm.Sub && src.may(addresses): // a distance, also between lower halves
		return dst.is(packet) && src.is(packet)
	default:
		return op == asm.Sub && wide(ins)
	}
}

// mayCompare allows comparisons that tell little about addresses: order and identity of places in the packet, and comparison with NULL.
func mayCompare(ins *asm.Instruction, s *state) bool {
	dst, src := operands(ins, s)
	switch op := ins.OpCode.JumpOp(); {
	case op == asm.Ja || op == asm.JCOND || op == asm.Call:
		return true
	case !dst.may(addresses) && !src.may(addresses):
		return true
	case op == asm.JSet || !wide(ins) || dst.may(stray) || src.may(stray): // compares single bits
		return false
	default:
		return dst.is(null) || src.is(null) || dst.is(packet) && src.is(packet)
	}
}

// mayLoad refuses to load part of a spilled pointer, or what could be one.
func mayLoad(ins *asm.Instruction, s *state) bool {
	from, size := s.reg[ins.Src], ins.OpCode.Size().Sizeof()
	at, n := from.span(ins.Offset, size)
	switch {
	case from.may(table): // root's programs may read the kernel's description of a map, with the addresses of its functions
		return false
	case from.may(frame) && size != slotSize:
		return false
	default:
		return !from.may(stack) || whole(at, n) || s.kept(at, n)&addresses == 0
	}
}

// mayStore allows to spill a whole pointer to the function's own frame.
func mayStore(ins *asm.Instruction, s *state) bool {
	to := s.reg[ins.Dst]
	return !s.reg[ins.Src].may(addresses) || to.is(stack) && to.known && whole(to.span(ins.Offset, ins.OpCode.Size().Sizeof()))
}

// mayUpdate refuses atomic operations on a pointer, or next to one.
func mayUpdate(ins *asm.Instruction, s *state) bool {
	to := s.reg[ins.Dst]
	switch {
	case s.reg[ins.Src].may(addresses), ins.OpCode.AtomicOp() == asm.CmpXchg && s.reg[asm.R0].may(addresses), to.may(frame):
		return false
	default:
		return !to.may(stack) || s.kept(to.span(ins.Offset, ins.OpCode.Size().Sizeof()))&addresses == 0
	}
}

// mayCall checks the arguments of a helper: a number must be a number, and memory that it reads must hold no pointers.
func (c *checker) mayCall(ins *asm.Instruction, s *state) bool {
	h := helper.All[asm.BuiltinFunc(ins.Constant)]
	for k, is := range h.Args {
		v := s.reg[asm.R1+asm.Register(k)]
		switch is {
		case helper.Number, helper.Size:
			if v.may(addresses) {
				return false
			}
		case helper.Key, helper.Value, helper.Read:
			at, n := v.span(0, c.reads(is, s, k))
			if v.may(frame) || v.may(stack) && s.kept(at, n)&addresses != 0 {
				return false
			}
		}
	}
	return true
}

// reads is how many bytes a helper reads at most through its k-th argument.
func (c *checker) reads(is helper.Arg, s *state, k int) int {
	var m *ebpf.MapSpec
	if r1 := s.reg[asm.R1]; r1.is(table) && r1.known {
		m = c.maps[c.Insns[r1.n].Reference()]
	}
	switch next := asm.R1 + asm.Register(k+1); {
	case is == helper.Key && m != nil:
		return int(m.KeySize)
	case is == helper.Value && m != nil:
		return int(m.ValueSize)
	case is == helper.Read && s.reg[next].known:
		return int(s.reg[next].n)
	default:
		return stackSize
	}
}

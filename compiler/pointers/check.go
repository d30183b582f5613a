package pointers

import (
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/helper"
)

// check refuses an instruction that lets an address out, given what is known before it.
func (c *checker) check(i int, s *state) error {
	ins := &c.Insns[i]
	ok := true
	switch class := ins.OpCode.Class(); {
	case ins.IsFunctionCall():
	case ins.OpCode.JumpOp() == asm.Call:
		ok = c.helperMayHave(ins, s)
	case class.IsJump():
		ok = mayCompare(ins, s)
	case class.IsALU():
		ok = mayCompute(ins, s)
	case class == asm.LdXClass:
		ok = mayLoad(ins, s)
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
	dst, src := s.reg[ins.Dst], value{}
	if ins.OpCode.Source() == asm.RegSource {
		src = s.reg[ins.Src]
	}
	switch op := ins.OpCode.ALUOp(); {
	case op == asm.Mov:
		return !src.isPointer() || wide(ins) && ins.Offset == 0 // else it is cut, or its sign extended
	case !dst.isPointer() && !src.isPointer():
		return true
	case op == asm.Sub && src.isPointer(): // a distance, also of the lower halves
		return dst.kind == packet && src.kind == packet && dst.known && src.known // the distance from NULL is an address
	case op == asm.Add:
		return wide(ins) && !(dst.isPointer() && src.isPointer())
	default:
		return op == asm.Sub && wide(ins)
	}
}

// mayCompare allows what tells little of where things are: order and identity of pointers, NULL.
func mayCompare(ins *asm.Instruction, s *state) bool {
	switch ins.OpCode.JumpOp() {
	case asm.Ja, asm.Exit, asm.JCOND:
		return true
	case asm.JSet: // asks for single bits
		return !s.reg[ins.Dst].isPointer() && (ins.OpCode.Source() == asm.ImmSource || !s.reg[ins.Src].isPointer())
	}
	dst := s.reg[ins.Dst]
	if ins.OpCode.Source() == asm.ImmSource {
		return !dst.isPointer() || ins.Constant == 0 && wide(ins)
	}
	src := s.reg[ins.Src]
	return !dst.isPointer() && !src.isPointer() || dst.isPointer() && src.isPointer() && wide(ins)
}

// mayLoad refuses a part of a pointer that was put aside, and what could be one.
func mayLoad(ins *asm.Instruction, s *state) bool {
	from, size := s.reg[ins.Src], ins.OpCode.Size().Sizeof()
	at := int(from.n) + int(ins.Offset)
	switch from.kind {
	case stack:
		return s.kept(at, size) == number || size == slotSize && at%slotSize == 0
	case local:
		return s.kept(-stackSize, stackSize) == number
	case frame:
		return size == slotSize
	default:
		return true
	}
}

// mayStore lets a pointer be put aside whole, in the function's own frame, and no atomic operation near one.
func mayStore(ins *asm.Instruction, s *state) bool {
	to, size := s.reg[ins.Dst], ins.OpCode.Size().Sizeof()
	at := int(to.n) + int(ins.Offset)
	if ins.OpCode.Mode() == asm.AtomicMode {
		near := to.kind == frame || to.kind == local || to.kind == stack && s.kept(at, size) != number
		compares := s.reg[asm.R0].isPointer() && asm.AtomicOp(ins.Constant)&0xf0 == 0xf0 // with r0, and fetches to it
		return !s.reg[ins.Src].isPointer() && !near && !compares
	}
	return !s.reg[ins.Src].isPointer() || to.kind == stack && size == slotSize && at%slotSize == 0
}

// helperMayHave checks the arguments of a call: numbers are numbers, and memory that is read holds no pointers.
func (c *checker) helperMayHave(ins *asm.Instruction, s *state) bool {
	h := helper.All[asm.BuiltinFunc(ins.Constant)]
	arg := func(k int) value { return s.reg[asm.R1+asm.Register(k)] }
	for k, is := range h.Args {
		size := stackSize // as far as is known
		m := c.maps[c.referenceOf(s.reg[asm.R1])]
		switch {
		case is == helper.Number || is == helper.Size:
			if arg(k).isPointer() {
				return false
			}
			continue
		case is == helper.Key && m != nil:
			size = int(m.KeySize)
		case is == helper.Value && m != nil:
			size = int(m.ValueSize)
		case is == helper.Read && arg(k+1).known:
			size = int(arg(k + 1).n)
		case is != helper.Key && is != helper.Value && is != helper.Read:
			continue
		}
		switch v := arg(k); v.kind {
		case stack:
			if s.kept(int(v.n), size) != number {
				return false
			}
		case local:
			if s.kept(-stackSize, stackSize) != number {
				return false
			}
		case frame:
			return false
		}
	}
	return true
}

func (c *checker) referenceOf(v value) string {
	if v.kind != table {
		return ""
	}
	return c.Insns[v.n].Reference()
}

package target

import (
	"github.com/cilium/ebpf/asm"
)

// A value is what is known of a register.
type value struct {
	kind  kind
	known bool  // n
	n     int32 // the number, or the pointer's distance from the beginning of its memory, or from r10 for the stack
	from  int32 // for a map and its values: the instruction that loaded the map
	small bool  // a number that fits in 32 bits, unsigned
}

type kind uint8

const (
	anything kind = iota // also a pointer that was spilled to the stack
	number
	context
	packet
	stack
	mapPointer
	mapValue
	several // pointers of different kinds
)

// registers are r0 to r10.
type registers [11]value

func (s registers) join(t registers) registers {
	for r := range s {
		s[r] = s[r].join(t[r])
	}
	return s
}

func (v value) join(w value) value {
	switch {
	case v == w:
		return v
	case v.kind == w.kind && v.from == w.from:
		return value{kind: v.kind, from: v.from, small: v.small && w.small}
	case v.kind == anything || w.kind == anything:
		return value{}
	case v.kind == number || w.kind == number: // NULL, for one
		return value{}
	default:
		return value{kind: several}
	}
}

// step is what is known after the instruction at index i.
func (c *checker) step(i int, s registers) registers {
	ins := &c.graph.Insns[i]
	if ins.Dst > asm.R10 || ins.Src > asm.R10 {
		return s
	}
	switch class := ins.OpCode.Class(); {
	case ins.OpCode.JumpOp() == asm.Call:
		r0 := value{kind: number}
		if ins.IsBuiltinCall() && asm.BuiltinFunc(ins.Constant) == asm.FnMapLookupElem && s[asm.R1].kind == mapPointer {
			r0 = value{kind: mapValue, known: true, from: s[asm.R1].from}
		}
		clear(s[asm.R0 : asm.R5+1])
		s[asm.R0] = r0
	case class.IsALU():
		s[ins.Dst] = alu(ins, s)
	case ins.OpCode.IsDWordLoad():
		s[ins.Dst] = loaded(ins, i)
	case class == asm.LdXClass:
		s[ins.Dst] = c.load(ins, s)
	}
	return s
}

func loaded(ins *asm.Instruction, i int) value {
	switch ins.Src {
	case asm.PseudoMapFD:
		return value{kind: mapPointer, from: int32(i)}
	case asm.PseudoMapValue:
		return value{}
	default:
		return value{kind: number, small: ins.Constant >= 0 && ins.Constant <= 1<<32-1}
	}
}

// load is the result of a load: a pointer from the context, a number from packets and maps.
func (c *checker) load(ins *asm.Instruction, s registers) value {
	small := ins.OpCode.Size() != asm.DWord
	switch base := s[ins.Src]; {
	case base.kind == context && ins.Offset == 0:
		return value{kind: packet, known: true}
	case base.kind == context, base.kind == packet, base.kind == mapValue:
		return value{kind: number, small: small}
	case small: // a pointer has eight bytes
		return value{kind: number, small: true}
	default:
		return value{}
	}
}

func alu(ins *asm.Instruction, s registers) value {
	op, wide := ins.OpCode.ALUOp(), ins.OpCode.Class() == asm.ALU64Class
	fromReg := ins.OpCode.Source() == asm.RegSource
	dst, src := s[ins.Dst], value{kind: number, known: true, n: int32(ins.Constant), small: ins.Constant >= 0 || !wide}
	if fromReg {
		src = s[ins.Src]
	}
	switch {
	case op == asm.Mov && wide:
		return src
	case op == asm.Mov && src.kind == number:
		return value{kind: number, known: src.known, n: src.n, small: true}
	case wide && (op == asm.Add || op == asm.Sub) && isPointer(dst) && src.kind != anything:
		return moved(dst, src, op)
	case wide && op == asm.Add && isPointer(src) && dst.kind == number:
		return moved(src, dst, op)
	case dst.kind == anything && wide && (op == asm.Add || op == asm.Sub):
		return value{}
	}
	small := !wide
	switch op {
	case asm.And:
		small = small || dst.small || src.small
	case asm.Or, asm.Xor, asm.Mod, asm.Div:
		small = small || dst.small && src.small
	case asm.RSh:
		small = small || dst.small || !fromReg && ins.Constant >= 32
	}
	return value{kind: number, small: small}
}

func isPointer(v value) bool {
	return v.kind == packet || v.kind == stack || v.kind == mapValue || v.kind == context || v.kind == several
}

// moved is the sum of a pointer and a number.
func moved(p, by value, op asm.ALUOp) value {
	switch {
	case isPointer(by):
		return value{kind: number} // their distance
	case op == asm.Sub:
		p.n -= by.n
	default:
		p.n += by.n
	}
	if p.known = p.known && by.known; !p.known {
		p.n = 0
	}
	return p
}

package metering

import (
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
	"github.com/lambdanic/lambdanic/compiler/check/helper"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// A value is what is known of a register.
type value struct {
	kind kind
	n    int32 // the constant; the distance from r10; the instruction that loaded the map
}

type kind uint8

const (
	unknown  kind = iota // no pointer into the stack
	constant             // a number
	mapFD                // a map, as helpers take it
	stack                // a pointer into the stack
	mixed                // perhaps a pointer into the stack
)

// Registers r0 to r10.
const registers = 11

type state [registers]value

// join is what is known where two paths join.
func (v value) join(w value) value {
	switch {
	case v == w:
		return v
	case v.kind == stack || v.kind == mixed || w.kind == stack || w.kind == mixed:
		return value{kind: mixed}
	default:
		return value{}
	}
}

// track finds what is known before each instruction; nil if it is unreachable.
func (g *graph) track() []*state {
	entry := state{asm.R10: {kind: stack}}
	return flow.Track(g.Graph, func(int) state { return entry }, g.step, func(a, b state) state {
		for r := range a {
			a[r] = a[r].join(b[r])
		}
		return a
	})
}

// step is what is known after the instruction at index i.
func (g *graph) step(i int, s state) state {
	ins := &g.Insns[i]
	switch class := ins.OpCode.Class(); {
	case ins.OpCode.JumpOp() == asm.Call:
		for r := asm.R0; r <= asm.R5; r++ {
			s[r] = value{}
		}
	case class.IsALU():
		s[ins.Dst] = alu(ins, s)
	case class == asm.LdClass && ins.OpCode.IsDWordLoad():
		s[ins.Dst] = value{}
		if ins.Src == asm.PseudoMapFD {
			s[ins.Dst] = value{mapFD, int32(i)}
		}
	case class == asm.LdXClass:
		s[ins.Dst] = value{}
	case class == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode:
		s[ins.Src], s[asm.R0] = value{}, value{} // the operation may fetch into these
	}
	return s
}

func alu(ins *asm.Instruction, s state) value {
	op, wide := ins.OpCode.ALUOp(), ins.OpCode.Class() == asm.ALU64Class
	fromReg := ins.OpCode.Source() == asm.RegSource
	switch dst := s[ins.Dst]; {
	case op == asm.Mov && !fromReg && ins.Offset == 0:
		return value{constant, int32(ins.Constant)}
	case op == asm.Mov && wide && fromReg && ins.Offset == 0:
		return s[ins.Src]
	case op == asm.Add && wide && !fromReg && dst.kind == stack:
		if at := int64(dst.n) + ins.Constant; at >= -512 && at <= 0 {
			return value{stack, int32(at)}
		}
		return value{kind: mixed}
	case op == asm.Mov && !fromReg:
		return value{}
	case dst.pointer() && op != asm.Mov, fromReg && s[ins.Src].pointer():
		return value{kind: mixed}
	default:
		return value{}
	}
}

// pointer tells whether the register could hold a pointer into the stack.
func (v value) pointer() bool { return v.kind == stack || v.kind == mixed }

// checkSlot proves that nothing but init and charges writes to the fuel's slot of the stack.
func (g *graph) checkSlot(values []*state) error {
	main := g.funcs[0]
	for i := main.From; i < main.To; i++ {
		if values[i] == nil || g.ours[i] {
			continue
		}
		ins, s := &g.Insns[i], values[i]
		var err error
		switch class := ins.OpCode.Class(); {
		case class == asm.StClass || class == asm.StXClass:
			err = g.checkStore(i, s)
		case ins.IsFunctionCall():
			for r := asm.R1; r <= asm.R5; r++ {
				if s[r].pointer() {
					return g.refuse(i, "a pointer into the stack is given to a function")
				}
			}
		case ins.IsBuiltinCall():
			err = g.checkHelper(i, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *graph) checkStore(i int, s *state) error {
	ins := &g.Insns[i]
	if ins.OpCode.Class() == asm.StXClass && s[ins.Src].pointer() {
		return g.refuse(i, "a pointer into the stack is stored")
	}
	switch to := s[ins.Dst]; to.kind {
	case mixed:
		return g.refuse(i, "a store through a pointer into the stack that is not followed")
	case stack:
		from := to.n + int32(ins.Offset)
		if from < int32(g.slot)+8 && from+int32(ins.OpCode.Size().Sizeof()) > int32(g.slot) {
			return g.refuse(i, "a store over the fuel")
		}
	}
	return nil
}

// checkHelper looks at the buffer that a helper writes to. It grows upwards from the pointer, and the verifier keeps it
// within the stack, but it may be long.
func (g *graph) checkHelper(i int, s *state) error {
	writes := helper.All[asm.BuiltinFunc(g.Insns[i].Constant)].Writes() // weigh refuses the unknown
	if writes == asm.R0 {
		return nil
	}
	to := s[writes]
	if to.kind == mixed || to.kind == stack && to.n < int32(g.slot)+8 {
		return g.refuse(i, "%s could write over the fuel", diagnose.Helper(asm.BuiltinFunc(g.Insns[i].Constant)))
	}
	return nil
}

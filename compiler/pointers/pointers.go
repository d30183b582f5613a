// Package pointers checks that no address of the kernel's leaves a lambda as a number, on the instructions that are about to be
// loaded, whoever compiled them. The verifier lets programs that root loads do as they like with addresses (allow_ptr_leaks in
// kernel/bpf/verifier.c), and a client who knew where the kernel has its memory would have half of an attack on it.
//
// Each register and each slot of the stack is followed: it holds a number, or may hold a pointer of some kind. A pointer may be
// moved, put aside on the stack, added to, compared with a pointer or with NULL, given to a function that takes one, and be
// taken from another into the same packet. All else makes a number of it, or puts it where numbers are read: that is refused.
package pointers

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/lambdanic/lambdanic/compiler/flow"
	"github.com/lambdanic/lambdanic/compiler/helper"
)

// ErrLeak says that an address leaves the program as a number.
var ErrLeak = errors.New("an address of the kernel's becomes a number, or is kept: keep an offset instead")

// A kind is what a register may hold.
type kind uint8

const (
	number  kind = iota
	packet       // its begin and end, and what is between
	pointer      // any other that is not named here, or one of several
	table        // a map, as helpers take it
	context      // the program's argument
	stack        // at a known place of the function's frame
	local        // somewhere in the function's frame
	frame        // into the frame of a caller that has pointers in it
)

type value struct {
	kind  kind
	known bool  // a number that is n, or a pointer into the packet that is not NULL
	n     int32 // stack: the distance from r10; table: the instruction that loaded it
}

func (v value) isPointer() bool { return v.kind != number }

// join is what is known where two paths meet: the worse of both, where NULL is better than all.
func (v value) join(w value) value {
	switch k := max(v.kind, w.kind); {
	case v == w:
		return v
	case k == stack:
		return value{kind: local}
	case k == packet && v.kind != w.kind, k == table:
		if v.kind != number && w.kind != number {
			return value{kind: pointer}
		}
		return value{kind: k, n: max(v.n, w.n)} // the other is NULL, or not the same
	default:
		return value{kind: k}
	}
}

const (
	registers = 11
	stackSize = 512
	slotSize  = 8
)

// A slot is eight bytes of the frame.
type slot struct {
	kind  kind
	bytes uint8 // those that are of a pointer
}

type state struct {
	reg  [registers]value
	slot [stackSize / slotSize]slot // from r10 down
}

func join(a, b state) state {
	for r := range a.reg {
		a.reg[r] = a.reg[r].join(b.reg[r])
	}
	for i, s := range b.slot {
		a.slot[i] = slot{max(a.slot[i].kind, s.kind), a.slot[i].bytes | s.bytes}
	}
	return a
}

// kept is what n bytes of the frame may hold, at a distance from r10.
func (s *state) kept(at, n int) (k kind) {
	for b := max(at, -stackSize); b < min(at+n, 0); b++ {
		if slot := s.slot[(-b-1)/slotSize]; slot.bytes>>uint((b+stackSize)%slotSize)&1 != 0 {
			k = max(k, slot.kind)
		}
	}
	return k
}

// forget is for bytes of the frame that are written over.
func (s *state) forget(at, n int) {
	for b := max(at, -stackSize); b < min(at+n, 0); b++ {
		slot := &s.slot[(-b-1)/slotSize]
		if slot.bytes &^= 1 << uint((b+stackSize)%slotSize); slot.bytes == 0 {
			slot.kind = number
		}
	}
}

type checker struct {
	*flow.Graph
	maps    map[string]*ebpf.MapSpec
	entries []state
	returns []value
	changed bool
}

// Check returns the first instruction of a program that lets an address out. Its errors wrap ErrLeak, or say that the program's
// flow makes no sense.
func Check(spec *ebpf.CollectionSpec, p *ebpf.ProgramSpec) (int, error) {
	g, err := flow.New(p.Instructions)
	if err != nil {
		return 0, fmt.Errorf("follow its pointers: %w", err)
	}
	c := &checker{Graph: g, maps: spec.Maps, entries: make([]state, len(g.Funcs)), returns: make([]value, len(g.Funcs))}
	for f := range c.entries {
		c.entries[f] = c.entry(f)
	}
	// What functions are called with and what they return only ever gets less known, so this ends.
	for {
		c.changed = false
		known := flow.TrackEdges(g, func(f int) state { return c.entries[f] }, c.follow, join)
		for i, s := range known {
			if s != nil && c.Insns[i].OpCode.JumpOp() == asm.Exit && c.Insns[i].OpCode.Class().IsJump() {
				c.leave(i, s.reg[asm.R0])
			}
		}
		if c.changed {
			continue
		}
		for i, s := range known {
			if s == nil {
				continue
			}
			if err := c.check(i, s); err != nil {
				return i, err
			}
		}
		return 0, nil
	}
}

// entry is what a function begins with, as far as it says so itself. The verifier checks that a global one is called so.
func (c *checker) entry(f int) (s state) {
	s.reg[asm.R10] = value{kind: stack}
	if f == 0 {
		s.reg[asm.R1] = value{kind: context}
		return s
	}
	meta := btf.FuncMetadata(&c.Insns[c.Funcs[f].From])
	if meta == nil {
		return s
	}
	proto, ok := meta.Type.(*btf.FuncProto)
	if !ok {
		return s
	}
	for i, param := range proto.Params {
		to, ok := btf.UnderlyingType(param.Type).(*btf.Pointer)
		if !ok || i >= 5 {
			continue
		}
		s.reg[asm.R1+asm.Register(i)] = value{kind: pointer}
		if t, ok := btf.UnderlyingType(to.Target).(*btf.Struct); ok && t.Name == "xdp_md" {
			s.reg[asm.R1+asm.Register(i)] = value{kind: context}
		}
	}
	return s
}

// follow is step, and what the way that control goes says of NULL.
func (c *checker) follow(i, to int, s state) (state, bool) {
	ins := &c.Insns[i]
	op := ins.OpCode.JumpOp()
	if ins.OpCode.Class() != asm.JumpClass || op != asm.JEq && op != asm.JNE || ins.OpCode.Source() != asm.ImmSource || ins.Constant != 0 || c.Target[i] == i+1 {
		return c.step(i, s), true
	}
	v, null := &s.reg[ins.Dst], (op == asm.JEq) == (to == c.Target[i])
	switch {
	case v.kind == number && v.known && (v.n == 0) != null, v.kind == packet && v.known && null:
		return s, false
	case v.kind == packet:
		v.known = true
		if null {
			*v = value{known: true}
		}
	}
	return s, true
}

// step is what is known after the instruction at index i.
func (c *checker) step(i int, s state) state {
	ins := &c.Insns[i]
	switch class := ins.OpCode.Class(); {
	case ins.IsFunctionCall():
		c.call(i, &s)
	case ins.OpCode.JumpOp() == asm.Call:
		s = c.helper(ins, s)
	case class.IsALU():
		s.reg[ins.Dst] = alu(ins, &s)
	case ins.OpCode.IsDWordLoad():
		s.reg[ins.Dst] = value{}
		switch ins.Src {
		case 0:
		case asm.PseudoMapFD:
			s.reg[ins.Dst] = value{kind: table, n: int32(i)}
		default:
			s.reg[ins.Dst] = value{kind: pointer}
		}
	case class == asm.LdXClass:
		s.reg[ins.Dst] = load(ins, &s)
	case class == asm.StClass, class == asm.StXClass:
		store(ins, &s)
	}
	return s
}

// call hands a caller's knowledge to the function that it calls.
func (c *checker) call(i int, s *state) {
	f := c.Callee(i)
	entry := c.entries[f]
	for r := asm.R1; r <= asm.R5; r++ {
		v := s.reg[r]
		if v.kind == stack || v.kind == local {
			v = value{kind: pointer}
			if s.kept(-stackSize, stackSize) != number {
				v = value{kind: frame}
			}
		}
		if v.kind == number {
			v = value{} // a function is followed once for all its calls
		}
		entry.reg[r] = entry.reg[r].join(v)
	}
	if entry != c.entries[f] {
		c.entries[f], c.changed = entry, true
	}
	for r := asm.R0; r <= asm.R5; r++ {
		s.reg[r] = value{}
	}
	s.reg[asm.R0] = c.returns[f]
}

func (c *checker) leave(i int, v value) {
	for f := range c.Funcs {
		if i >= c.Funcs[f].From && i < c.Funcs[f].To && f > 0 {
			if joined := c.returns[f].join(v); joined != c.returns[f] {
				c.returns[f], c.changed = joined, true
			}
		}
	}
}

func (c *checker) helper(ins *asm.Instruction, s state) state {
	fn := asm.BuiltinFunc(ins.Constant)
	if w := helper.All[fn].Writes(); w != asm.R0 && s.reg[w].kind == stack && s.reg[w+1].known {
		s.forget(int(s.reg[w].n), int(s.reg[w+1].n))
	}
	for r := asm.R0; r <= asm.R5; r++ {
		s.reg[r] = value{}
	}
	if fn == asm.FnMapLookupElem {
		s.reg[asm.R0] = value{kind: pointer}
	}
	return s
}

// alu is what an operation makes of its operands. What it must not do, check refuses.
func alu(ins *asm.Instruction, s *state) value {
	dst, src := s.reg[ins.Dst], value{known: true, n: int32(ins.Constant)}
	if ins.OpCode.Source() == asm.RegSource {
		src = s.reg[ins.Src]
	}
	switch op := ins.OpCode.ALUOp(); {
	case op == asm.Mov && ins.Offset == 0:
		return src
	case op != asm.Add && op != asm.Sub, dst.isPointer() && src.isPointer(), !dst.isPointer() && !src.isPointer():
		return value{}
	case dst.kind == stack && src.known:
		at := int64(dst.n) + int64(src.n)
		if op == asm.Sub {
			at = int64(dst.n) - int64(src.n)
		}
		if at >= -stackSize && at <= 0 {
			return value{kind: stack, n: int32(at)}
		}
		return value{kind: local}
	}
	moved := value{kind: max(dst.kind, src.kind), known: dst.known && dst.kind == packet || src.known && src.kind == packet}
	if moved.kind == stack {
		moved.kind = local
	}
	return moved
}

// Offsets in struct xdp_md: data, data_end, data_meta.
const contextPointers = 12

func load(ins *asm.Instruction, s *state) value {
	switch from := s.reg[ins.Src]; {
	case from.kind == context && ins.Offset < contextPointers:
		return value{kind: packet, known: true}
	case from.kind == stack:
		k := s.kept(int(from.n)+int(ins.Offset), ins.OpCode.Size().Sizeof())
		if k == stack {
			k = local
		}
		return value{kind: k}
	case from.kind == frame:
		return value{kind: pointer}
	}
	return value{}
}

// store puts what is stored to the frame into its slots.
func store(ins *asm.Instruction, s *state) {
	to, v := s.reg[ins.Dst], value{}
	if ins.OpCode.Mode() == asm.AtomicMode {
		s.reg[ins.Src], s.reg[asm.R0] = s.reg[ins.Src].fetched(), s.reg[asm.R0].fetched()
		return
	}
	if to.kind != stack {
		return
	}
	if ins.OpCode.Class() == asm.StXClass {
		v = s.reg[ins.Src]
	}
	at := int(to.n) + int(ins.Offset)
	s.forget(at, ins.OpCode.Size().Sizeof())
	if v.isPointer() && at < 0 && at >= -stackSize {
		s.slot[(-at-1)/slotSize] = slot{v.kind, 0xff} // whole, as check has it
	}
}

// fetched is what an atomic operation leaves in a register where it puts what was in memory.
func (v value) fetched() value {
	if v.isPointer() {
		return v
	}
	return value{}
}

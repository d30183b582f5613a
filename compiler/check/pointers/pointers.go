// Package pointers checks that no kernel address leaves a lambda as a number. It checks the instructions that are about to be loaded,
// whoever compiled them. The verifier lets root's programs do anything with addresses (allow_ptr_leaks in kernel/bpf/verifier.c), and a
// client that knew where the kernel has its memory would have half of an attack on it.
//
// Each register and each stack slot is followed along all paths, also those that the verifier knows never to be taken. A value that may be
// a number on one path and a pointer on another is both, and may be used only as both may be. A pointer may be moved, spilled to the
// stack, added to, compared with NULL, and given to a function that takes one. Two pointers into the packet may also be compared and
// subtracted. Everything else turns a pointer into a number, or stores it where numbers are read, and is refused.
//
// The verifier keeps a pointer within 2^29 bytes of what it points to (BPF_MAX_VAR_OFF), so comparing sums tells nothing. This limit does
// not hold for an address that the verifier has come to take for a number, nor for what was on the stack before. Both are stray, and may
// only be moved.
package pointers

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
	"github.com/lambdanic/lambdanic/compiler/check/helper"
)

// ErrLeak says that a program leaks an address.
var ErrLeak = errors.New("an address of the kernel's becomes a number, or is kept: keep an offset instead")

// maxSteps bounds how long a program is followed, about a second. The corpus takes two steps per instruction.
const maxSteps = 1 << 20

type checker struct {
	*flow.Graph
	maps  map[string]*ebpf.MapSpec
	owner []int // the function that an instruction is in
	funcs []function
	known []*state
	work  []int // functions to follow again
	steps int
}

// A function holds what is known of a function from all its calls. Knowledge only shrinks.
type function struct {
	entry   state
	summary summary
	callers []int
	waits   bool // is in checker.work
}

// A summary is the effect of calling a function.
type summary struct {
	returns value
	resizes bool // the packet
	writes  bool // to a caller's frame, perhaps
}

// Check returns the first instruction of a program that leaks an address. Its errors wrap ErrLeak, or say that the control flow is
// malformed or takes too many steps to follow.
func Check(spec *ebpf.CollectionSpec, p *ebpf.ProgramSpec) (int, error) {
	g, err := flow.New(p.Instructions)
	if err != nil {
		return 0, fmt.Errorf("follow its pointers: %w", err)
	}
	c := newChecker(g, spec.Maps)
	if !c.run() {
		return 0, fmt.Errorf("follow its pointers: it takes more than %d steps: make it smaller", maxSteps)
	}
	for i, s := range c.known {
		if s == nil {
			continue
		}
		if err := c.check(i, s); err != nil {
			return i, err
		}
	}
	return 0, nil
}

func newChecker(g *flow.Graph, maps map[string]*ebpf.MapSpec) *checker {
	n := len(g.Insns)
	c := &checker{Graph: g, maps: maps, owner: make([]int, n), funcs: make([]function, len(g.Funcs)), known: make([]*state, n)}
	for f := range c.funcs {
		c.funcs[f].entry = begin()
		for i := g.Funcs[f].From; i < g.Funcs[f].To; i++ {
			c.owner[i] = f
			if g.Insns[i].IsFunctionCall() {
				callee := &c.funcs[g.Callee(i)]
				callee.callers = append(callee.callers, f)
			}
		}
		c.again(f)
	}
	c.funcs[0].entry.reg[asm.R1] = value{kind: context}
	return c
}

// run follows functions until nothing changes, for at most maxSteps. It tells whether it finished.
func (c *checker) run() bool {
	for len(c.work) > 0 && c.steps < maxSteps {
		f := c.work[0]
		c.work, c.funcs[f].waits = c.work[1:], false
		c.followFunc(f)
	}
	return c.steps < maxSteps
}

// again queues a function to be followed again.
func (c *checker) again(f int) {
	if !c.funcs[f].waits {
		c.work, c.funcs[f].waits = append(c.work, f), true
	}
}

// learn updates the summary of the function that an instruction is in.
func (c *checker) learn(i int, now summary) {
	f := &c.funcs[c.owner[i]]
	if now == f.summary {
		return
	}
	f.summary = now
	for _, caller := range f.callers {
		c.again(caller)
	}
}

func isExit(ins *asm.Instruction) bool {
	return ins.OpCode.Class().IsJump() && ins.OpCode.JumpOp() == asm.Exit
}

func (c *checker) followFunc(f int) {
	flow.TrackFunc(c.Graph, f, c.funcs[f].entry, c.known, c.follow, join)
	for i := c.Funcs[f].From; i < c.Funcs[f].To; i++ {
		if s := c.known[i]; s != nil && isExit(&c.Insns[i]) {
			c.leave(i, s.reg[asm.R0])
		}
	}
}

// follow is step, refined by what the branch taken says of NULL.
func (c *checker) follow(i, to int, s state) (state, bool) {
	if c.steps++; c.steps >= maxSteps {
		return s, false
	}
	ins := &c.Insns[i]
	if !asksForNull(ins) || c.Target[i] == i+1 {
		return c.step(i, s), true
	}
	v := &s.reg[ins.Dst]
	if isNull := (ins.OpCode.JumpOp() == asm.JEq) == (to == c.Target[i]); !isNull {
		v.kind &^= null
		return s, v.kind != 0
	}
	goes := v.may(number | null)
	*v = constant(0)
	return s, goes
}

func asksForNull(ins *asm.Instruction) bool {
	op := ins.OpCode.JumpOp()
	return ins.OpCode.Class() == asm.JumpClass && (op == asm.JEq || op == asm.JNE) && ins.OpCode.Source() == asm.ImmSource && ins.Constant == 0
}

// step is what is known after the instruction at index i.
func (c *checker) step(i int, s state) state {
	ins := &c.Insns[i]
	switch class := ins.OpCode.Class(); {
	case ins.IsFunctionCall():
		c.call(i, &s)
	case ins.IsBuiltinCall():
		c.helper(i, &s)
	case class.IsALU():
		s.reg[ins.Dst] = alu(ins, &s)
	case ins.OpCode.IsDWordLoad():
		s.reg[ins.Dst] = loaded(i, ins)
	case class == asm.LdXClass:
		s.reg[ins.Dst] = load(ins, &s)
	case class == asm.StClass, class == asm.StXClass:
		c.store(i, &s)
	}
	return s
}

// call hands a caller's knowledge to the callee, and applies the callee's summary.
func (c *checker) call(i int, s *state) {
	callee := c.Callee(i)
	f, own, callers := &c.funcs[callee], false, false
	entry := f.entry
	for r := asm.R1; r <= asm.R5; r++ {
		v := s.reg[r]
		own, callers = own || v.may(stack), callers || v.may(frame)
		if v.may(stack) {
			v = value{kind: v.kind&^stack | frame}
		}
		entry.reg[r] = entry.reg[r].join(v)
	}
	if entry != f.entry {
		f.entry = entry
		c.again(callee)
	}
	now := c.funcs[c.owner[i]].summary
	if own && f.summary.writes {
		s.blur(-stackSize, stackSize)
	}
	if f.summary.resizes {
		s.resize()
	}
	now.writes = now.writes || callers && f.summary.writes
	now.resizes = now.resizes || f.summary.resizes
	c.learn(i, now)
	s.clobber(f.summary.returns)
}

// clobber applies a call's effect on registers.
func (s *state) clobber(r0 value) {
	for r := asm.R1; r <= asm.R5; r++ {
		s.reg[r] = value{kind: number}
	}
	s.reg[asm.R0] = r0
}

func (c *checker) leave(i int, v value) {
	if v.may(stack) { // the callee's frame is gone
		v = value{kind: v.kind&^stack | stray}
	}
	now := c.funcs[c.owner[i]].summary
	now.returns = now.returns.join(v)
	c.learn(i, now)
}

func (c *checker) helper(i int, s *state) {
	fn := asm.BuiltinFunc(c.Insns[i].Constant)
	now := c.funcs[c.owner[i]].summary
	if w := helper.All[fn].Writes(); w != asm.R0 {
		to, size := s.reg[w], s.reg[w+1]
		switch {
		case to.is(stack) && to.known && size.known:
			s.blur(int(to.n), int(size.n))
		case to.may(stack):
			s.blur(-stackSize, stackSize)
		}
		now.writes = now.writes || to.may(frame)
	}
	if fn == asm.FnXdpAdjustTail || fn == asm.FnXdpAdjustHead {
		s.resize()
		now.resizes = true
	}
	c.learn(i, now)
	r0 := value{kind: number}
	if fn == asm.FnMapLookupElem {
		r0.kind = memory | null
	}
	s.clobber(r0)
}

// operands returns the operands of an operation or a comparison.
func operands(ins *asm.Instruction, s *state) (dst, src value) {
	dst, src = s.reg[ins.Dst], constant(ins.Constant)
	if ins.OpCode.Source() == asm.RegSource {
		src = s.reg[ins.Src]
	}
	return dst, src
}

// alu is the result of an operation. check refuses forbidden operations.
func alu(ins *asm.Instruction, s *state) value {
	dst, src := operands(ins, s)
	switch op := ins.OpCode.ALUOp(); {
	case op == asm.Mov && ins.Offset == 0:
		return src
	case !dst.may(addresses) && !src.may(addresses):
		return value{kind: number}
	case op == asm.Add:
		return sum(dst, src, 1)
	case op == asm.Sub && !src.may(addresses):
		return sum(dst, src, -1)
	default:
		return value{kind: number}
	}
}

// loaded is what a two-word load puts into a register.
func loaded(i int, ins *asm.Instruction) value {
	switch ins.Src {
	case 0:
		return constant(ins.Constant)
	case asm.PseudoMapFD:
		return value{table, true, int32(i)}
	default:
		return value{kind: memory}
	}
}

// struct xdp_md begins with data, data_end and data_meta.
const contextPointers = 12

func load(ins *asm.Instruction, s *state) value {
	from, size := s.reg[ins.Src], ins.OpCode.Size().Sizeof()
	k := kind(0)
	if from.may(context) {
		switch {
		case ins.Offset >= contextPointers:
			k |= number
		case ins.Offset >= 0 && ins.Offset%4 == 0 && ins.OpCode == asm.LoadMemOp(asm.Word):
			k |= packet
		default:
			k |= stray
		}
	}
	if from.may(stack) {
		k |= s.kept(from.span(ins.Offset, size))
	}
	if from.may(frame) {
		k |= anything
	}
	if from.may(packet|memory) || k == 0 {
		k |= number
	}
	return value{kind: k}
}

// store updates the frame: no other memory is followed.
func (c *checker) store(i int, s *state) {
	ins := &c.Insns[i]
	to, k := s.reg[ins.Dst], number
	switch op := ins.OpCode.AtomicOp(); {
	case ins.OpCode.Class() == asm.StClass:
		k = constant(ins.Constant).kind
	case op == asm.InvalidAtomic:
		k = s.reg[ins.Src].kind
	case op == asm.CmpXchg:
		s.reg[asm.R0] = value{kind: number}
	case fetches(op):
		s.reg[ins.Src] = value{kind: number}
	}
	at, n := to.span(ins.Offset, ins.OpCode.Size().Sizeof())
	switch {
	case to.is(stack) && to.known:
		s.put(at, n, k)
	case to.may(stack):
		s.blur(at, n)
	}
	if to.may(frame) {
		now := c.funcs[c.owner[i]].summary
		now.writes = true
		c.learn(i, now)
	}
}

func fetches(op asm.AtomicOp) bool { return op&(asm.FetchAdd&^asm.AddAtomic) != 0 }

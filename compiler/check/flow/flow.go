// Package flow follows control and values through BPF programs before they are loaded.
package flow

import (
	"container/heap"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// A Graph is a program's control-flow graph. Its nodes are the instructions, by index.
type Graph struct {
	Insns  asm.Instructions
	Target []int  // of a jump or of a call to a function of the program, else -1
	Jumped []bool // some jump goes there
	Funcs  []Func // by first instruction; the program's entry comes first
	callee map[int]int
}

// A Func is a run of instructions.
type Func struct {
	From, To int  // its first, and one past its last
	Global   bool // verified on its own, once, however often it is called
}

// Error says that a program's control flow is malformed.
type Error struct {
	At   int // the instruction, by index
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("instruction %d: %s", e.At, e.What) }

// New resolves jumps and calls just as asm.Instructions.Marshal does. Its errors are of type *Error.
func New(insns asm.Instructions) (*Graph, error) {
	g := &Graph{
		Insns: insns, Target: make([]int, len(insns)), Jumped: make([]bool, len(insns)), callee: map[int]int{},
	}
	if len(insns) == 0 {
		return nil, &Error{0, "no instructions"}
	}
	if err := g.findTargets(); err != nil {
		return nil, err
	}
	return g, g.findFuncs()
}

func (g *Graph) findTargets() error {
	byOffset := map[int64]int{}
	bySymbol := map[string]int{}
	for iter := g.Insns.Iterate(); iter.Next(); {
		byOffset[int64(iter.Offset)] = iter.Index
		if name := iter.Ins.Symbol(); name != "" {
			bySymbol[name] = iter.Index
		}
	}
	for iter := g.Insns.Iterate(); iter.Next(); {
		ins, i := iter.Ins, iter.Index
		g.Target[i] = -1
		if ins.Dst > asm.R10 || ins.Src > asm.R10 {
			return &Error{i, "a register that there is not"}
		}
		if !followed(ins) {
			return &Error{i, "an instruction whose effect is not followed"}
		}
		if !Transfers(ins) {
			continue
		}
		var ok bool
		distance := int64(ins.Offset)
		if ins.IsFunctionCall() || isLongJump(ins) {
			distance = ins.Constant
		}
		if ins.Reference() != "" && distance == -1 {
			g.Target[i], ok = bySymbol[ins.Reference()]
		} else {
			g.Target[i], ok = byOffset[int64(iter.Offset)+1+distance]
		}
		if !ok {
			return &Error{i, "a jump to nowhere"}
		}
		if !ins.IsFunctionCall() {
			g.Jumped[g.Target[i]] = true
		}
	}
	return nil
}

var atomics = []asm.AtomicOp{
	asm.AddAtomic, asm.AndAtomic, asm.OrAtomic, asm.XorAtomic, asm.FetchAdd, asm.FetchAnd, asm.FetchOr, asm.FetchXor, asm.Xchg, asm.CmpXchg,
}

// followed tells whether this package can follow the instruction. It cannot follow BPF_LOAD_ACQ, which loads but has the class of a
// store, and jumps through a register, whose targets only the kernel knows.
func followed(ins *asm.Instruction) bool {
	if op := ins.OpCode.AtomicOp(); op != asm.InvalidAtomic {
		return slices.Contains(atomics, op) && ins.Constant == int64(op>>8)
	}
	return !ins.OpCode.Class().IsJump() || ins.OpCode.JumpOp() != asm.Ja || ins.OpCode.Source() == asm.ImmSource
}

// Transfers tells whether control can go, within the program, elsewhere than to the next instruction.
func Transfers(ins *asm.Instruction) bool {
	return ins.OpCode.Class().IsJump() && ins.OpCode.JumpOp() != asm.Exit && !ins.IsBuiltinCall() && !ins.IsKfuncCall()
}

func isLongJump(ins *asm.Instruction) bool {
	return ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja
}

// findFuncs derives the functions from the calls, as the kernel does.
func (g *Graph) findFuncs() error {
	starts := []int{0}
	for i := range g.Insns {
		if g.Insns[i].IsFunctionCall() {
			starts = append(starts, g.Target[i])
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for k, from := range starts {
		to := len(g.Insns)
		if k+1 < len(starts) {
			to = starts[k+1]
		}
		// A function without type information is static: the verifier walks it with each caller.
		f := btf.FuncMetadata(&g.Insns[from])
		g.callee[from] = k
		g.Funcs = append(g.Funcs, Func{from, to, f != nil && f.Linkage != btf.StaticFunc})
	}
	for _, f := range g.Funcs {
		for i := f.From; i < f.To; i++ {
			for _, s := range g.Successors(i) {
				if s < f.From || s >= f.To {
					return &Error{i, "control leaves the function"}
				}
			}
		}
	}
	return nil
}

// Callee is the index of the function that the instruction at index i calls.
func (g *Graph) Callee(i int) int { return g.callee[g.Target[i]] }

// Frame returns how many bytes of its stack function k uses: the farthest from r10 that it addresses.
func (g *Graph) Frame(k int) int {
	bytes := 0
	f := g.Funcs[k]
	for i := f.From; i < f.To; i++ {
		ins := &g.Insns[i]
		class := ins.OpCode.Class()
		if class.IsStore() && ins.Dst == asm.R10 || class.IsLoad() && ins.Src == asm.R10 {
			bytes = max(bytes, -int(ins.Offset))
		}
		if ins.OpCode == asm.Add.Op(asm.ImmSource) && i > 0 && g.Insns[i-1].OpCode == asm.Mov.Op(asm.RegSource) && g.Insns[i-1].Src == asm.R10 {
			bytes = max(bytes, -int(ins.Constant))
		}
	}
	return bytes
}

// Deepest returns the most bytes of stack that function k and its callees take at once; frame says what each function takes.
// A recursion counts once.
func (g *Graph) Deepest(k int, frame func(k int) int) int {
	depth := make([]int, len(g.Funcs))
	for k := range depth {
		depth[k] = -1
	}
	var walk func(k int) int
	walk = func(k int) int {
		if depth[k] >= 0 {
			return depth[k]
		}
		depth[k] = 0
		callees := 0
		for i := g.Funcs[k].From; i < g.Funcs[k].To; i++ {
			if g.Insns[i].IsFunctionCall() {
				callees = max(callees, walk(g.Callee(i)))
			}
		}
		depth[k] = frame(k) + callees
		return depth[k]
	}
	return walk(k)
}

// Successors lists where control goes within the function. The second of two is the jump's target.
func (g *Graph) Successors(i int) []int {
	ins := &g.Insns[i]
	switch {
	case ins.OpCode.JumpOp() == asm.Exit:
		return nil
	case !Transfers(ins) || ins.IsFunctionCall():
		return []int{i + 1}
	case ins.OpCode.JumpOp() == asm.Ja:
		return []int{g.Target[i]}
	default:
		return []int{i + 1, g.Target[i]}
	}
}

// Track finds what is known before each instruction, nil if it is unreachable. It starts from what is known where functions begin, by
// their index. step is what is known after an instruction, join what is known where two paths join: it may only lose knowledge, and only
// a bounded number of times.
func Track[State comparable](
	g *Graph, entry func(f int) State, step func(i int, s State) State, join func(a, b State) State,
) []*State {
	known := make([]*State, len(g.Insns))
	for f := range g.Funcs {
		TrackFunc(g, f, entry(f), known, func(i, _ int, s State) (State, bool) { return step(i, s), true }, join)
	}
	return known
}

// TrackFunc is Track for one function: it fills the function's range of known. step is also given the successor, and says whether
// control can go there.
func TrackFunc[State comparable](
	g *Graph, f int, entry State, known []*State, step func(i, to int, s State) (State, bool), join func(a, b State) State,
) {
	from := g.Funcs[f].From
	clear(known[from:g.Funcs[f].To])
	known[from] = &entry
	for work := (queue{from}); len(work) > 0; {
		i := heap.Pop(&work).(int)
		for len(work) > 0 && work[0] == i {
			heap.Pop(&work)
		}
		for _, s := range g.Successors(i) {
			after, goes := step(i, s, *known[i])
			if goes && learn(&known[s], after, join) {
				heap.Push(&work, s)
			}
		}
	}
}

// A queue holds instructions in program order, which control mostly follows.
type queue []int

func (q queue) Len() int           { return len(q) }
func (q queue) Less(a, b int) bool { return q[a] < q[b] }
func (q queue) Swap(a, b int)      { q[a], q[b] = q[b], q[a] }
func (q *queue) Push(i any)        { *q = append(*q, i.(int)) }

func (q *queue) Pop() any {
	last := len(*q) - 1
	i := (*q)[last]
	*q = (*q)[:last]
	return i
}

// learn joins a state to what is known, and tells whether that changed.
func learn[State comparable](known **State, after State, join func(a, b State) State) bool {
	if *known == nil {
		*known = &after
		return true
	}
	joined := join(**known, after)
	if joined == **known {
		return false
	}
	**known = joined
	return true
}

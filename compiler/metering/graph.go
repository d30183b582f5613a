package metering

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// A graph is a program's control flow. Its nodes are the instructions, by index.
type graph struct {
	insns  asm.Instructions
	target []int // of a jump or a call to a function of the program, else -1
	funcs  []function
	byFrom map[int]int // functions by first instruction
	jumped []bool      // some jump goes there

	charges []charge
	within  []int    // for each instruction the charge that it is the last of, else -1
	slot    int16    // of the fuel
	ours    []bool   // the instruction is the store to the slot in init or in a charge
	weight  []uint64 // of each instruction, with what it calls
}

// A function is a run of instructions. The kernel, too, takes them from the calls that there are.
type function struct {
	from, to int // first, and one past the last
	global   bool

	order    []int  // its reachable instructions, each after all that lead to it without passing a charge
	cyclic   bool   // it, or a static function that it calls, has loops that nothing meters
	heaviest uint64 // of the instructions that the verifier walks in it
	longest  uint64 // of the paths through it, if not cyclic
}

func (g *graph) metered() bool { return len(g.charges) > 0 }

func newGraph(insns asm.Instructions) (*graph, error) {
	n := len(insns)
	g := &graph{
		insns: insns, target: make([]int, n), jumped: make([]bool, n), byFrom: map[int]int{},
		within: make([]int, n), ours: make([]bool, n), weight: make([]uint64, n),
	}
	if n == 0 || n > maxInstructions {
		return nil, fmt.Errorf("%w: a program of %d instructions", ErrUnbounded, n)
	}
	for i := range insns {
		g.within[i] = -1
		if err := g.checkForm(i); err != nil {
			return nil, err
		}
	}
	if err := g.findTargets(); err != nil {
		return nil, err
	}
	return g, g.findFunctions()
}

// checkForm refuses instructions that are not what they look like: that change as they are loaded, or whose effect is not
// modelled here.
func (g *graph) checkForm(i int) error {
	ins := &g.insns[i]
	switch class := ins.OpCode.Class(); {
	case ins.Dst > asm.R10 || ins.Src > asm.R10:
		return g.refuse(i, "an unknown register")
	case btf.CORERelocationMetadata(ins) != nil:
		return g.refuse(i, "the instruction depends on the kernel that loads it (CO-RE)")
	case ins.IsLoadOfFunctionPointer():
		return g.refuse(i, "a callback, whose runs nobody counts: write a loop")
	case ins.OpCode.JumpOp() == asm.Call && !ins.IsBuiltinCall() && (!ins.IsFunctionCall() || ins.OpCode.Source() != asm.ImmSource):
		return g.refuse(i, "a call of what is no helper and no function of the program")
	case class.IsJump() && !slices.Contains(jumps, ins.OpCode.JumpOp()):
		return g.refuse(i, "an unknown jump")
	case class == asm.LdClass && !ins.OpCode.IsDWordLoad(),
		ins.OpCode.IsDWordLoad() && ins.Src != 0 && (!ins.IsLoadFromMap() || ins.Reference() == ""):
		return g.refuse(i, "a load of what is no map of the lambda")
	case ins.OpCode.JumpOp() == asm.JCOND && (ins.OpCode != mayGoto || ins.Src != asm.PseudoMayGoto || ins.Dst != 0 || ins.Constant != 0):
		return g.refuse(i, "an unknown jump")
	}
	return nil
}

var jumps = []asm.JumpOp{
	asm.Ja, asm.JEq, asm.JGT, asm.JGE, asm.JSet, asm.JNE, asm.JSGT, asm.JSGE, asm.JLT, asm.JLE, asm.JSLT, asm.JSLE,
	asm.Call, asm.Exit, asm.JCOND,
}

// findTargets resolves jumps and calls just as asm.Instructions.Marshal will.
func (g *graph) findTargets() error {
	byOffset := map[asm.RawInstructionOffset]int{}
	bySymbol := map[string]int{}
	for iter := g.insns.Iterate(); iter.Next(); {
		byOffset[iter.Offset] = iter.Index
		if name := iter.Ins.Symbol(); name != "" {
			bySymbol[name] = iter.Index
		}
	}
	for iter := g.insns.Iterate(); iter.Next(); {
		ins, i := iter.Ins, iter.Index
		g.target[i] = -1
		if !transfers(ins) {
			continue
		}
		distance, ok := int64(ins.Offset), false
		if ins.IsFunctionCall() || isLongJump(ins) {
			distance = ins.Constant
		}
		if ins.Reference() != "" && distance == -1 {
			g.target[i], ok = bySymbol[ins.Reference()]
		} else if to := int64(iter.Offset) + 1 + distance; to >= 0 && to <= 2*maxInstructions {
			g.target[i], ok = byOffset[asm.RawInstructionOffset(to)]
		}
		if !ok {
			return g.refuse(i, "a jump to nowhere")
		}
		if !ins.IsFunctionCall() {
			g.jumped[g.target[i]] = true
		}
	}
	return nil
}

// transfers tells whether control can go elsewhere than to the next instruction, within the program.
func transfers(ins *asm.Instruction) bool {
	return ins.OpCode.Class().IsJump() && ins.OpCode.JumpOp() != asm.Exit && !ins.IsBuiltinCall()
}

func isLongJump(ins *asm.Instruction) bool {
	return ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja
}

func (g *graph) findFunctions() error {
	starts := []int{0}
	for i := range g.insns {
		if g.insns[i].IsFunctionCall() {
			starts = append(starts, g.target[i])
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	for k, from := range starts {
		to := len(g.insns)
		if k+1 < len(starts) {
			to = starts[k+1]
		}
		// Without type information a function is static, and walked with its caller.
		f := btf.FuncMetadata(&g.insns[from])
		g.byFrom[from] = k
		g.funcs = append(g.funcs, function{from: from, to: to, global: f != nil && f.Linkage != btf.StaticFunc})
	}
	for _, f := range g.funcs {
		for i := f.from; i < f.to; i++ {
			for _, s := range g.successors(i) {
				if s < f.from || s >= f.to {
					return g.refuse(i, "control leaves the function")
				}
			}
		}
	}
	return nil
}

// successors lists where control goes within the function. The second of two is where the instruction jumps to.
func (g *graph) successors(i int) []int {
	ins := &g.insns[i]
	switch {
	case ins.OpCode.JumpOp() == asm.Exit:
		return nil
	case !transfers(ins) || ins.IsFunctionCall():
		return []int{i + 1}
	case ins.OpCode.JumpOp() == asm.Ja:
		return []int{g.target[i]}
	default:
		return []int{i + 1, g.target[i]}
	}
}

// paid tells whether the edge is the one on which a charge succeeds.
func (g *graph) paid(from, to int) bool {
	return g.within[from] >= 0 && to == from+1 && g.target[from] != to
}

// sort finds the function's order. Where there is none, it returns an instruction on a cycle that no charge ends.
func (g *graph) sort(f *function) (cycle int, ok bool) {
	w := walk{g: g, f: f, state: make([]uint8, f.to-f.from), cycle: -1}
	for i := f.to - 1; i >= f.from; i-- { // backwards, so that loops which follow each other do so in the order
		if g.within[i] >= 0 {
			w.from(i + 1) // what a charge lets run on
		}
	}
	w.from(f.from)
	slices.Reverse(w.order)
	f.order = w.order
	return w.cycle, w.cycle < 0
}

// flow orders the function's instructions so that a loop's first is where it is entered.
func (g *graph) flow(f *function) []int {
	w := walk{g: g, f: f, state: make([]uint8, f.to-f.from), paid: true}
	w.from(f.from)
	slices.Reverse(w.order)
	return w.order
}

// A walk goes through a function depth first.
type walk struct {
	g     *graph
	f     *function
	paid  bool    // also follow paid edges
	state []uint8 // unseen, open or done
	order []int   // each instruction after all that it leads to
	cycle int     // an instruction that leads to itself, by edges that were followed
}

const (
	unseen = iota
	open
	done
)

func (w *walk) from(root int) {
	type step struct{ node, next int }
	if w.state[root-w.f.from] != unseen {
		return
	}
	w.state[root-w.f.from] = open
	for path := []step{{node: root}}; len(path) > 0; {
		top := &path[len(path)-1]
		next := w.g.successors(top.node)
		if top.next == len(next) {
			w.state[top.node-w.f.from] = done
			w.order = append(w.order, top.node)
			path = path[:len(path)-1]
			continue
		}
		s := next[top.next]
		top.next++
		if !w.paid && w.g.paid(top.node, s) {
			continue
		}
		switch w.state[s-w.f.from] {
		case open:
			w.cycle = s
		case unseen:
			w.state[s-w.f.from] = open
			path = append(path, step{node: s})
		}
	}
}

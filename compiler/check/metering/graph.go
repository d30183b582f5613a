package metering

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
)

// A graph is a program's control-flow graph, with weights and charges.
type graph struct {
	*flow.Graph
	funcs []function // as flow.Graph.Funcs

	charges []charge
	within  []int    // for each instruction, the charge that ends with it, else -1
	slot    int16    // of the fuel
	ours    []bool   // the instruction is the store to the slot in init or in a charge
	weight  []uint64 // of each instruction, with what it calls
}

// A function describes one function of the program.
type function struct {
	flow.Func

	order   []int  // its reachable instructions, each after all that lead to it without a charge between
	longest uint64 // weight of the longest path, without loops that only the verifier bounds
	pace    uint64 // of these loops: weight per instruction; 0 if there are none
}

func (g *graph) metered() bool { return len(g.charges) > 0 }

func newGraph(insns asm.Instructions) (*graph, error) {
	n := len(insns)
	g := &graph{
		Graph: &flow.Graph{Insns: insns}, within: make([]int, n), ours: make([]bool, n), weight: make([]uint64, n),
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
	control, err := flow.New(insns)
	if e := (*flow.Error)(nil); errors.As(err, &e) {
		return nil, g.refuse(e.At, "%s", e.What)
	}
	g.Graph = control
	for _, f := range control.Funcs {
		g.funcs = append(g.funcs, function{Func: f})
	}
	return g, nil
}

// checkForm refuses instructions that the kernel changes as it loads them, and those whose effect is not modelled here.
func (g *graph) checkForm(i int) error {
	ins := &g.Insns[i]
	switch class := ins.OpCode.Class(); {
	case ins.Dst > asm.R10 || ins.Src > asm.R10:
		return g.refuse(i, "an unknown register")
	case btf.CORERelocationMetadata(ins) != nil:
		return g.refuse(i, "the instruction depends on the kernel that loads it (CO-RE)")
	case ins.IsLoadOfFunctionPointer():
		return g.refuse(i, "a callback, whose runs nobody counts: write a loop")
	case ins.OpCode.JumpOp() == asm.Call && !ins.IsBuiltinCall() && (!ins.IsFunctionCall() || ins.OpCode.Source() != asm.ImmSource):
		return g.refuse(i, "a call of neither a helper nor a function of the program")
	case class.IsJump() && !slices.Contains(jumps, ins.OpCode.JumpOp()):
		return g.refuse(i, "an unknown jump")
	case class == asm.LdClass && !ins.OpCode.IsDWordLoad(),
		ins.OpCode.IsDWordLoad() && ins.Src != 0 && (!ins.IsLoadFromMap() || ins.Reference() == ""):
		return g.refuse(i, "a load of an address outside of the lambda's maps")
	case ins.OpCode.JumpOp() == asm.JCOND && (ins.OpCode != mayGoto || ins.Src != asm.PseudoMayGoto || ins.Dst != 0 || ins.Constant != 0):
		return g.refuse(i, "an unknown jump")
	}
	return nil
}

var jumps = []asm.JumpOp{
	asm.Ja, asm.JEq, asm.JGT, asm.JGE, asm.JSet, asm.JNE, asm.JSGT, asm.JSGE, asm.JLT, asm.JLE, asm.JSLT, asm.JSLE,
	asm.Call, asm.Exit, asm.JCOND,
}

// paid tells whether the edge is the one on which a charge succeeds.
func (g *graph) paid(from, to int) bool {
	return g.within[from] >= 0 && to == from+1 && g.Target[from] != to
}

// sort finds the function's order. If there is none, it returns an instruction on a cycle without a charge.
func (g *graph) sort(f *function) (cycle int, ok bool) {
	w := walk{g: g, f: f, state: make([]uint8, f.To-f.From), cycle: -1}
	for i := f.To - 1; i >= f.From; i-- { // backwards, so that consecutive loops keep their order
		if g.within[i] >= 0 {
			w.from(i + 1) // where a charge that succeeds goes on
		}
	}
	w.from(f.From)
	slices.Reverse(w.order)
	f.order = w.order
	return w.cycle, w.cycle < 0
}

// flow orders the function's instructions so that each loop begins with its header.
func (g *graph) flow(f *function) []int {
	w := walk{g: g, f: f, state: make([]uint8, f.To-f.From), paid: true}
	w.from(f.From)
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
	cycle int     // an instruction on a cycle of followed edges
}

const (
	unseen = iota
	open
	done
)

func (w *walk) from(root int) {
	type step struct{ node, next int }
	if w.state[root-w.f.From] != unseen {
		return
	}
	w.state[root-w.f.From] = open
	for path := []step{{node: root}}; len(path) > 0; {
		top := &path[len(path)-1]
		next := w.g.Successors(top.node)
		if top.next == len(next) {
			w.state[top.node-w.f.From] = done
			w.order = append(w.order, top.node)
			path = path[:len(path)-1]
			continue
		}
		s := next[top.next]
		top.next++
		if !w.paid && w.g.paid(top.node, s) {
			continue
		}
		switch w.state[s-w.f.From] {
		case open:
			w.cycle = s
		case unseen:
			w.state[s-w.f.From] = open
			path = append(path, step{node: s})
		}
	}
}

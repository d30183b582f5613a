package metering

import (
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
)

// waiters is how many other processors are assumed to hold a lock before one gets it.
const waiters = 32

// weighLocks adds to taking a lock the time that others hold it. Nothing may loop while it holds a lock, since those who wait pay for
// that time.
func (g *graph) weighLocks() error {
	held := flow.Track(g.Graph, func(int) bool { return false }, func(i int, locked bool) bool {
		switch ins := &g.Insns[i]; {
		case isCall(ins, asm.FnSpinLock):
			return true
		case isCall(ins, asm.FnSpinUnlock):
			return false
		default:
			return locked
		}
	}, func(a, b bool) bool { return a || b })
	locked := func(i int) bool { return held[i] != nil && *held[i] }

	var inside uint64
	for i := range g.Insns {
		if !locked(i) {
			continue
		}
		inside = add(inside, g.weight[i])
		if g.Insns[i].IsFunctionCall() {
			return g.refuse(i, "a function is called while a lock is held")
		}
		for _, s := range g.Successors(i) {
			if s <= i && locked(s) { // every cycle has such an edge
				return g.refuse(i, "a loop while a lock is held")
			}
		}
	}
	for i := range g.Insns {
		if isCall(&g.Insns[i], asm.FnSpinLock) {
			g.weight[i] = add(g.weight[i], mul(inside, waiters))
		}
	}
	return nil
}

func isCall(ins *asm.Instruction, fn asm.BuiltinFunc) bool {
	return ins.IsBuiltinCall() && asm.BuiltinFunc(ins.Constant) == fn
}

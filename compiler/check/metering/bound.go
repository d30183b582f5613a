package metering

import (
	"math"
	"sort"
)

// weighCalls adds the callee's weight to the weight of each call.
func (g *graph) weighCalls() error {
	state := make([]uint8, len(g.funcs))
	var visit func(k int) error
	visit = func(k int) error {
		f := &g.funcs[k]
		state[k] = open
		for i := f.From; i < f.To; i++ {
			if !g.Insns[i].IsFunctionCall() {
				continue
			}
			callee := g.Callee(i)
			if state[callee] == open {
				return g.refuse(i, "a recursion")
			}
			if state[callee] == unseen {
				if err := visit(callee); err != nil {
					return err
				}
			}
		}
		state[k] = done
		return g.weighFunction(f)
	}
	return visit(0)
}

// weighFunction sums up a function whose callees are summed up.
func (g *graph) weighFunction(f *function) error {
	at, ok := g.sort(f)
	if !ok && g.metered() {
		return g.refuse(at, "a loop without a charge")
	}
	sum := uint64(0)
	for i := f.From; i < f.To; i++ {
		if g.Insns[i].IsFunctionCall() {
			callee := &g.funcs[g.Callee(i)]
			if callee.Global {
				g.weight[i] = add(g.weight[i], callee.total(walkLimit))
			} else {
				g.weight[i] = add(g.weight[i], callee.longest)
				f.pace = max(f.pace, callee.pace)
			}
		}
		sum = add(sum, g.weight[i])
	}
	switch {
	case !ok: // a run is a simple path, and loops
		f.longest, f.pace = sum, max(f.pace, g.pace(f))
	case f.From != 0 || !g.metered():
		f.longest = g.heaviest(f, f.order)
	}
	if total := f.total(walkLimit); total > maxWalked {
		return g.refuse(f.From, "the function takes up to %d ms", total/PerMicrosecond/1000)
	}
	return nil
}

// total is what a call of the function weighs if the verifier walks that many instructions for it.
func (f *function) total(walked uint64) uint64 { return add(f.longest, mul(walked, f.pace)) }

// pace is the weight per instruction that no unmetered loop of the function exceeds. The verifier bounds these loops: it walks every one
// of their instructions. If a loop weighs more than a pace allows, the debt at its instructions grows without end.
func (g *graph) pace(f *function) uint64 {
	most := uint64(0)
	for i := f.From; i < f.To; i++ {
		most = max(most, g.weight[i])
	}
	most = min(most, maxWalked)
	return uint64(sort.Search(int(most), func(pace int) bool { return g.keepsTo(f, int64(pace)) }))
}

// keepsTo tells whether no loop weighs more than pace. It may wrongly say no for deeply nested loops, which take it too long.
func (g *graph) keepsTo(f *function, pace int64) bool {
	debt := make([]int64, f.To-f.From)
	for range maxDepth {
		raised := false
		for _, i := range f.order {
			owed := debt[i-f.From] + int64(min(g.weight[i], maxWalked)) - pace
			for _, s := range g.Successors(i) {
				if owed > debt[s-f.From] {
					debt[s-f.From], raised = owed, true
				}
			}
		}
		if !raised {
			return true
		}
	}
	return false
}

// once is the weight of the heaviest path through the program that runs each loop once.
func (g *graph) once() uint64 {
	main := &g.funcs[0]
	return g.heaviest(main, g.flow(main))
}

// heaviest is the weight of the heaviest path along an order of instructions.
func (g *graph) heaviest(f *function, order []int) (most uint64) {
	best := make([]uint64, f.To-f.From)
	for _, i := range order {
		through := add(best[i-f.From], g.weight[i])
		most = max(most, through)
		for _, s := range g.Successors(i) {
			best[s-f.From] = max(best[s-f.From], through)
		}
	}
	return most
}

// nowhere is the debt of instructions that no path reaches.
const nowhere = math.MinInt64

// owed is what paths owe before each instruction of a function, or of one loop in it.
type owed struct {
	g      *graph
	f      *function
	order  []int            // the instructions, in the function's order
	inside func(i int) bool // the instruction is in the loop; nil for the whole function
	header int              // of the loop, whose back edges are not followed; -1 for the whole function
	debt   []int64          // by instruction of the function
}

// debt is the most that a path through the program owes anywhere.
func (g *graph) debt() (uint64, error) {
	f := &g.funcs[0]
	if len(g.Insns) > maxMetered {
		return 0, g.refuse(0, "a metered program of more than %d instructions", maxMetered)
	}
	o := owed{g: g, f: f, order: f.order, header: -1, debt: make([]int64, f.To-f.From)}
	if at, ok := o.settle(f.From); !ok {
		return 0, g.refuse(at, "a loop takes more than it is charged")
	}
	most := int64(0)
	for _, i := range f.order {
		if debt := o.debt[i-f.From]; debt != nowhere {
			most = max(most, debt+int64(g.weight[i]))
		}
	}
	return uint64(most), nil
}

// settle computes the debts of paths from an instruction, or returns the charge of a loop in which they grow without end. One pass
// carries them along all paths up to the next charge. If the debts are finite, a heaviest path passes each charge at most once.
func (o *owed) settle(from int) (charge int, ok bool) {
	for _, i := range o.order {
		o.debt[i-o.f.From] = nowhere
	}
	o.debt[from-o.f.From] = 0
	for range min(len(o.g.charges)+2, maxPasses) {
		if charge = o.pass(); charge < 0 {
			return 0, true
		}
	}
	return charge, false
}

// pass returns the last charge whose success still raised a debt, or -1.
func (o *owed) pass() (charge int) {
	charge = -1
	for _, i := range o.order {
		if o.debt[i-o.f.From] == nowhere {
			continue
		}
		for _, s := range o.g.Successors(i) {
			if s == o.header || o.inside != nil && !o.inside(s) {
				continue
			}
			if after := o.after(i, s); after > o.debt[s-o.f.From] {
				o.debt[s-o.f.From] = after
				if o.g.paid(i, s) {
					charge = o.g.charges[o.g.within[i]].first
				}
			}
		}
	}
	return charge
}

// after is what a path owes once it has gone from one instruction to the next.
func (o *owed) after(i, next int) int64 {
	debt := o.debt[i-o.f.From] + int64(o.g.weight[i])
	if o.g.paid(i, next) {
		debt -= int64(o.g.charges[o.g.within[i]].cost)
	}
	return debt
}

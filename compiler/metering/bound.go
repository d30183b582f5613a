package metering

import (
	"math"
)

// weighCalls adds to the weight of each call that of what it calls.
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
	if at, ok := g.sort(f); !ok {
		if g.metered() {
			return g.refuse(at, "a loop without a charge")
		}
		f.cyclic = true
	}
	for i := f.From; i < f.To; i++ {
		if !g.Insns[i].IsFunctionCall() {
			f.heaviest = max(f.heaviest, g.weight[i])
			continue
		}
		callee := &g.funcs[g.Callee(i)]
		if callee.Global {
			g.weight[i] = add(g.weight[i], callee.total())
			f.heaviest = max(f.heaviest, g.weight[i])
			continue
		}
		f.cyclic = f.cyclic || callee.cyclic
		f.heaviest = max(f.heaviest, callee.heaviest)
		g.weight[i] = add(g.weight[i], callee.longest)
	}
	if f.From != 0 || !g.metered() {
		f.longest = g.longestPath(f)
	}
	if total := f.total(); total > maxWalked {
		return g.refuse(f.From, "the function takes up to %d ms", total/PerMicrosecond/1000)
	}
	return nil
}

// total is what a call of the function that is verified by itself weighs.
func (f *function) total() uint64 {
	if f.cyclic {
		return mul(walkLimit, f.heaviest)
	}
	return f.longest
}

// longestPath is the weight of the heaviest path through a function without loops.
func (g *graph) longestPath(f *function) uint64 {
	if f.cyclic {
		return 0
	}
	return g.heaviest(f, f.order)
}

// once is the weight of the heaviest path through the program that goes around no loop twice.
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

// nowhere is the debt of what no path leads to.
const nowhere = math.MinInt64

// owed is what paths owe before each instruction of a function, or of a part of it.
type owed struct {
	g     *graph
	f     *function
	order []int            // the part, in the function's order
	part  func(i int) bool // nil for all
	door  int              // ways back there are no ways; -1 if there is none
	debt  []int64          // by instruction of the function
}

// debt is the most that a path through the program owes anywhere.
func (g *graph) debt() (uint64, error) {
	f := &g.funcs[0]
	if len(g.Insns) > maxMetered {
		return 0, g.refuse(0, "a metered program of more than %d instructions", maxMetered)
	}
	o := owed{g: g, f: f, order: f.order, door: -1, debt: make([]int64, f.To-f.From)}
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

// settle computes the debts of paths from an instruction, or returns the charge of a loop in which they grow without end.
// A pass carries them over all paths that no charge interrupts; where they are finite, no path needs more charges than there
// are.
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
			if s == o.door || o.part != nil && !o.part(s) {
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

// after is what a path owes that goes from one instruction to the next.
func (o *owed) after(i, next int) int64 {
	debt := o.debt[i-o.f.From] + int64(o.g.weight[i])
	if o.g.paid(i, next) {
		debt -= int64(o.g.charges[o.g.within[i]].cost)
	}
	return debt
}

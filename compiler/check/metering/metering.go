// Package metering checks that a lambda ends in time, on the instructions that are about to be loaded, whoever compiled them.
//
// The verifier proves that a program ends, not when: a loop left by may_goto may run for 250 ms (BPF_MAX_TIMED_LOOPS in
// kernel/bpf/core.c). So the compiler counts. A slot of the entry function's stack holds what is left of the budget. It is
// filled by the first instructions of the program and charged in every cycle of the control-flow graph:
//
//	init     rA = map_value(fuel)+0 ; rA = *(u64 *)(rA + 0) ; *(u64 *)(r10 + F) = rA
//	charge   rA = *(u64 *)(r10 + F) ; rA += -COST ; *(u64 *)(r10 + F) = rA ; if rA s< 0 goto T ; may_goto T
//	zero     rA = map_value(fuel)+8 ; rA = *(u64 *)(rA + 0)
//
// The last loads a zero whose value the verifier does not know: the compiler makes loops verifiable with it.
//
// # What is proven
//
// In a program that contains may_goto, only init and charges write the slot: no other store overlaps it, no helper may write
// to it, and no pointer into the stack goes where the check cannot follow it (memory, a subprogram). Charges and init run as a whole.
// may_goto occurs in charges only. Each instruction has a weight (a third of a nanosecond; more for memory, calls and helpers), and
// every cycle charges at least what it weighs. So a run weighs at most its budget plus the most that any path owes at any point:
// Bound.Debt.
//
// Formally: let debt(v) be the supremum, over all paths from the entry to v, of the path's weights less its successful charges. It is
// finite if no cycle has a positive sum, which Bellman and Ford's algorithm decides. Fuel never grows, so the successful charges of a
// path sum up to at most the budget.
//
// The verifier walks a program without may_goto to its end. At a state that it knows it goes no further, because it has been to the end
// from there. So no path through the program has more instructions than were walked, and the kernel tells that number. Per walked
// instruction, loops weigh at most what the heaviest of them does: Bound.Pace. The verifier walks a global function once, however
// often it is called, so each call counts with its full weight.
package metering

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// ErrUnbounded says that a program is not proven to end in time. The error that wraps it says why.
var ErrUnbounded = errors.New("running time not bounded")

// PerMicrosecond is the weight that a program gets for each microsecond of its budget. A processor of today does a unit's work in less
// time, as long as its data is in a cache.
const PerMicrosecond = 3000

// walkLimit is how many instructions the verifier walks at most (BPF_COMPLEXITY_LIMIT_INSNS in include/linux/bpf.h).
const walkLimit = 1_000_000

// Limits of what is accepted.
const (
	maxInstructions = 1 << 18
	maxMetered      = 1 << 17 // instructions of a metered program
	maxPasses       = 1000    // over these; a program needs about one per level of nested loops
	maxDepth        = 64      // of nested loops
	maxDebt         = 1_000 * PerMicrosecond
	maxWalked       = 1_000_000 * PerMicrosecond
)

// A Bound says how long a program runs at most.
type Bound struct {
	// A metered program weighs at most its budget plus Debt. Any other weighs at most Debt, without loops that only the verifier bounds.
	Metered bool
	Debt    uint64
	Pace    uint64 // weight of these loops per instruction that the verifier walks; 0 if there are none
	Once    uint64 // the heaviest path, with each loop once
	Loops   []Loop
}

// Coarse is how long unmetered loops may take whatever a lambda's limit is, since their bound is many times the time that they take.
const Coarse = 10 * time.Millisecond

// CheckWalked refuses a program whose unmetered loops can take longer than its limit, given how many instructions the verifier walked.
// The error wraps ErrUnbounded.
func (b Bound) CheckWalked(instructions uint32, limit time.Duration) error {
	weight := add(b.Debt, mul(uint64(instructions), b.Pace))
	if took := time.Duration(min(weight/unitsPerNs, math.MaxInt64)); b.Pace > 0 && took > max(limit, Coarse) {
		return fmt.Errorf("%w: its loops that are not charged take up to %v, limits.time is %v: write them in C, or raise the limit",
			ErrUnbounded, took.Round(time.Millisecond), limit)
	}
	return nil
}

// A Loop is a metered loop.
type Loop struct {
	Place diagnose.Place `json:"place"`
	Cost  uint64         `json:"cost"` // of one iteration
}

// Check proves that the programs of spec end in time, and returns their bounds. Its errors wrap ErrUnbounded.
func Check(spec *ebpf.CollectionSpec) (map[string]Bound, error) {
	bounds := map[string]Bound{}
	for name, p := range spec.Programs {
		b, err := checkProgram(spec, p)
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		bounds[name] = b
	}
	return bounds, nil
}

func checkProgram(spec *ebpf.CollectionSpec, p *ebpf.ProgramSpec) (Bound, error) {
	g, err := analyse(spec, p)
	if err != nil {
		return Bound{}, err
	}
	if !g.metered() {
		return Bound{Debt: g.funcs[0].longest, Pace: g.funcs[0].pace, Once: g.once()}, nil
	}
	debt, err := g.debt()
	if err != nil {
		return Bound{}, err
	}
	if debt > maxDebt {
		return Bound{}, g.refuse(0, "up to %d µs pass without a charge", debt/PerMicrosecond)
	}
	b := Bound{Metered: true, Debt: debt, Once: g.once()}
	for _, c := range g.charges {
		b.Loops = append(b.Loops, Loop{diagnose.PlaceOf(g.Insns, c.first), c.cost})
	}
	return b, nil
}

// analyse builds the graph with its weights.
func analyse(spec *ebpf.CollectionSpec, p *ebpf.ProgramSpec) (*graph, error) {
	return analyseAs(spec, p, false)
}

// analyseAs weighs instructions by what they usually take, or by what they take at most.
func analyseAs(spec *ebpf.CollectionSpec, p *ebpf.ProgramSpec, usual bool) (*graph, error) {
	g, err := newGraph(p.Instructions)
	if err != nil {
		return nil, err
	}
	if err := g.findShapes(); err != nil {
		return nil, err
	}
	values := g.track()
	if g.metered() {
		if err := g.checkSlot(values); err != nil {
			return nil, err
		}
	}
	return g, g.weigh(spec, values, usual)
}

// refuse makes an error that names the instruction at index i, and its line if that is known.
func (g *graph) refuse(i int, format string, args ...any) error {
	at := fmt.Sprintf("instruction %d", i)
	if p := diagnose.PlaceOf(g.Insns, i); p.File != "" {
		at = fmt.Sprintf("%v, %s", p, at)
	}
	return fmt.Errorf("%w: %s: %s", ErrUnbounded, at, fmt.Sprintf(format, args...))
}

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
// The last is a zero which the verifier does not know, for the compiler to make loops verifiable with.
//
// # What is proven
//
// In a program that contains may_goto, the slot is written by init and charges only: no other store overlaps it, no helper is
// given room to write in it, and no pointer into the stack gets to where it is not followed (memory, a subprogram). Charges and
// init are run whole. may_goto is nowhere else. Then, giving each instruction a weight (a third of a nanosecond;
// memory, calls and helpers have more), every cycle charges at least what it weighs. A program's run so weighs at most its budget, plus the most
// that any path owes at any point: Bound.Debt.
//
// Formally: let debt(v) be the supremum, over all paths from the entry to v, of the weights on it less the charges that succeeded
// on it. It is finite where no cycle has positive sum, which Bellman and Ford's algorithm decides. Fuel never grows, so that
// the charges that succeed on a path sum up to at most the budget.
//
// A program without may_goto is walked by the verifier to its end. Where it comes to a state that it knows, it goes no further, but
// it has been to the end from there: no way through the program has more instructions than were walked, and the kernel tells how
// many that were. Of these, loops weigh no more than their heaviest does for each instruction: Bound.Pace. Global functions are
// walked once, whoever calls them how often, so their weight is that of the call.
package metering

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// ErrUnbounded says that a program is not proven to end in time; the wrapped text says why.
var ErrUnbounded = errors.New("running time not bounded")

// PerMicrosecond is how much weight a program gets for each microsecond of its budget. A processor of today does a unit's work
// in less time, as long as it finds its data in a cache.
const PerMicrosecond = 3000

// walkLimit is how many instructions the verifier walks at most (BPF_COMPLEXITY_LIMIT_INSNS in include/linux/bpf.h).
const walkLimit = 1_000_000

// What is refused beyond.
const (
	maxInstructions = 1 << 18
	maxMetered      = 1 << 17 // instructions of a program whose cycles have to be summed up
	maxPasses       = 1000    // over these; a program needs about as many as its loops are deep
	maxDepth        = 64      // of loops in each other
	maxDebt         = 1_000 * PerMicrosecond
	maxWalked       = 1_000_000 * PerMicrosecond
)

// A Bound says how long a program runs at most.
type Bound struct {
	// Metered programs weigh their budget and Debt. For others Debt is all, but for loops that only the verifier bounds.
	Metered bool
	Debt    uint64
	Pace    uint64 // what these weigh for each instruction that the verifier walks; 0 if there are none
	Once    uint64 // the heaviest way through, each loop once
	Loops   []Loop
}

// Coarse is how long loops that are not charged may take whatever a lambda's limit is: what is known of them is many times what
// they take.
const Coarse = 10 * time.Millisecond

// CheckWalked refuses a program of which the verifier walked so many instructions, where its loops that nothing charges can take
// longer than its limit. The error wraps ErrUnbounded.
func (b Bound) CheckWalked(instructions uint32, limit time.Duration) error {
	weight := add(b.Debt, mul(uint64(instructions), b.Pace))
	if took := time.Duration(min(weight/unitsPerNs, math.MaxInt64)); b.Pace > 0 && took > max(limit, Coarse) {
		return fmt.Errorf("%w: its loops that are not charged take up to %v, limits.time is %v: write them in C, or raise the limit",
			ErrUnbounded, took.Round(time.Millisecond), limit)
	}
	return nil
}

// A Loop is one that is metered.
type Loop struct {
	Place diagnose.Place `json:"place"`
	Cost  uint64         `json:"cost"` // of one time around
}

// Check proves that the programs of spec end in time, and returns by when. Its errors wrap ErrUnbounded.
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

// analyse does all but the sums.
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

// refuse names the instruction at index i, and its line where that is known.
func (g *graph) refuse(i int, format string, args ...any) error {
	at := fmt.Sprintf("instruction %d", i)
	if p := diagnose.PlaceOf(g.Insns, i); p.File != "" {
		at = fmt.Sprintf("%v, %s", p, at)
	}
	return fmt.Errorf("%w: %s: %s", ErrUnbounded, at, fmt.Sprintf(format, args...))
}

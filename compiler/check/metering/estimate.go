package metering

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// What a budget counts is what things take at most: a helper with cold caches, floating point with subnormal numbers. What they usually
// take is about a third of that, measured by `lambdanic-bench compiler/costs`.
const usualShare = 3

// unitNs is what a unit of weight takes where caches are warm: the budget counts a third of a nanosecond.
const unitNs = 0.2

// An Estimate is how long a program usually takes on a processor of today, in nanoseconds. It bounds nothing.
type Estimate struct {
	Once  float64   // the heaviest way through, each loop once
	Loops []float64 // one time around each of Bound.Loops
}

// EstimateTime estimates a program of spec. Its errors are Check's.
func EstimateTime(spec *ebpf.CollectionSpec, program string) (e Estimate, err error) {
	p := spec.Programs[program]
	if p == nil {
		return e, fmt.Errorf("estimate time: there is no program %s", program)
	}
	usual := p.Copy() // what prices it changes its charges
	g, err := analyseAs(spec, usual, true)
	if err != nil {
		return e, fmt.Errorf("program %s: %w", program, err)
	}
	e.Once = nanoseconds(g.once())
	if !g.metered() {
		return e, nil
	}
	if err := g.price(); err != nil {
		return e, fmt.Errorf("program %s: %w", program, err)
	}
	for _, c := range g.charges {
		e.Loops = append(e.Loops, nanoseconds(c.cost))
	}
	return e, nil
}

// nanoseconds is what a sum of usual weights takes, which are in thirds.
func nanoseconds(weight uint64) float64 { return float64(weight) * unitNs / usualShare }

// scaleToUsual makes the weights of instructions usual ones.
func (g *graph) scaleToUsual() {
	inFloat := false
	for i := range g.Insns {
		if line, ok := g.Insns[i].Source().(*btf.Line); ok {
			inFloat = isFloat(line.FileName())
		}
		if !inFloat && !g.Insns[i].IsBuiltinCall() {
			g.weight[i] = mul(g.weight[i], usualShare)
		}
	}
}

// isFloat says whether a file of the SDK's computes with floating point.
func isFloat(file string) bool {
	return slices.Contains([]string{"lambda_float.h", "lambda_elementary.h", "lambda_wide.h"}, path.Base(file)) && strings.Contains(file, "sdk/")
}

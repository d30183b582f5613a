package metering

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// A budget counts worst cases: a helper with cold caches, floating point with subnormal numbers. The usual case takes about a third of
// that, as `lambdanic-bench compiler/costs` measures.
const usualShare = 3

// unitNs is what a unit of weight takes with warm caches: the budget counts a third of a nanosecond.
const unitNs = 0.2

// An Estimate is how long a program usually takes on a processor of today, in nanoseconds. It bounds nothing.
type Estimate struct {
	Once  float64   // the heaviest path, with each loop once
	Loops []float64 // one iteration of each of Bound.Loops
}

// EstimateTime estimates a program of spec. Its errors are Check's.
func EstimateTime(spec *ebpf.CollectionSpec, program string) (e Estimate, err error) {
	p := spec.Programs[program]
	if p == nil {
		return e, fmt.Errorf("estimate time: there is no program %s", program)
	}
	usual := p.Copy() // pricing changes the charges
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

// nanoseconds is what a sum of usual weights takes. Usual weights count thirds of a unit.
func nanoseconds(weight uint64) float64 { return float64(weight) * unitNs / usualShare }

// scaleToUsual turns the weights of instructions into usual weights.
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

// isFloat says whether the file is an SDK header that implements floating point.
func isFloat(file string) bool {
	return slices.Contains([]string{"lambda_float.h", "lambda_elementary.h", "lambda_wide.h"}, path.Base(file)) && strings.Contains(file, "sdk/")
}

package metering

import (
	"math"
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/helper"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

const unitsPerNs = PerMicrosecond / 1000

// bytesPerNs is how fast memory is copied, at least, where it is in a cache.
const bytesPerNs = 12

// packetMax is the longest packet: a jumbo frame. (Packets of a host's own virtual link can be longer. bpf_xdp_load_bytes refuses to
// copy more than there is, without delay.)
const packetMax = 9216

// All other instructions weigh 1. Loads and stores are taken to hit a cache; an atomic operation waits for its cache line.
const (
	weightMemory   = 2
	weightCall     = 5
	weightDivision = 24
	weightAtomic   = 60
)

// A weigher knows the maps that helpers work on.
type weigher struct {
	maps    map[string]*ebpf.MapSpec
	insns   asm.Instructions
	largest *ebpf.MapSpec // stands for a map that is not known
}

// weigh weighs all instructions, callees first.
func (g *graph) weigh(spec *ebpf.CollectionSpec, values []*state, usual bool) error {
	if err := checkMap(spec); err != nil {
		return err
	}
	w := &weigher{maps: spec.Maps, insns: g.Insns, largest: &ebpf.MapSpec{Type: ebpf.Hash}}
	for _, m := range spec.Maps {
		w.largest.KeySize = max(w.largest.KeySize, m.KeySize)
		w.largest.ValueSize = max(w.largest.ValueSize, m.ValueSize)
	}
	for i := range g.Insns {
		if values[i] == nil {
			continue
		}
		switch ins := &g.Insns[i]; {
		case ins.IsBuiltinCall():
			h, ok := helper.All[asm.BuiltinFunc(ins.Constant)]
			if !ok {
				return g.refuse(i, "a call of %s, which may take any time", diagnose.Helper(asm.BuiltinFunc(ins.Constant)))
			}
			g.weight[i] = weightCall + h.Time*unitsPerNs + w.touched(h, values[i])*unitsPerNs/bytesPerNs
		default:
			g.weight[i] = weightOf(ins)
		}
	}
	if usual {
		g.scaleToUsual()
	}
	if err := g.weighLocks(); err != nil {
		return err
	}
	return g.weighCalls()
}

func weightOf(ins *asm.Instruction) uint64 {
	switch op := ins.OpCode; {
	case op.Class() == asm.StXClass && op.Mode() == asm.AtomicMode:
		return weightAtomic
	case op.Class().IsALU() && (op.ALUOp() == asm.Div || op.ALUOp() == asm.Mod || op.ALUOp() == asm.SDiv || op.ALUOp() == asm.SMod):
		return weightDivision
	case ins.IsFunctionCall():
		return weightCall
	case op.Class().IsLoad() && !op.IsDWordLoad(), op.Class().IsStore():
		return weightMemory
	default:
		return 1
	}
}

// mapOf is the map in r1.
func (w *weigher) mapOf(s *state) *ebpf.MapSpec {
	if s[asm.R1].kind == mapFD {
		if m := w.maps[w.insns[s[asm.R1].n].Reference()]; m != nil {
			return m
		}
	}
	return w.largest
}

// touched is how many bytes a helper touches.
func (w *weigher) touched(h helper.Helper, s *state) (n uint64) {
	longest := uint64(math.MaxUint64)
	for i, a := range h.Args {
		switch a {
		case helper.Context:
			longest = packetMax
		case helper.Key:
			n += uint64(w.mapOf(s).KeySize)
		case helper.Value:
			n += uint64(w.mapOf(s).ValueSize)
		case helper.Size:
			n += min(w.size(s[asm.R1+asm.Register(i)]), longest)
		}
	}
	return n
}

// size bounds an argument that gives the length of another. The verifier has proven that the memory exists, and the longest memory is
// a map value or the packet.
func (w *weigher) size(v value) uint64 {
	longest := max(uint64(w.largest.ValueSize), packetMax)
	if v.kind == constant && v.n >= 0 {
		return min(uint64(v.n), longest)
	}
	return longest
}

// add and mul saturate, so that sums of hostile programs do not wrap around.
func add(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

func mul(a, b uint64) uint64 {
	if high, low := bits.Mul64(a, b); high == 0 {
		return low
	}
	return math.MaxUint64
}

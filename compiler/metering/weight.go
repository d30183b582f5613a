package metering

import (
	"math"
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// A helper takes a fixed time, and some for the bytes that it touches.
type helper struct {
	ns     uint64
	bytes  func(*weigher, *state) uint64
	writes asm.Register // the argument that points to what it writes; r0 if nothing
}

const unitsPerNs = PerMicrosecond / 1000

// bytesPerNs is how fast memory is copied, at least, where it is in a cache.
const bytesPerNs = 12

// packetMax is how long packets are: jumbo frames. (Those of a virtual link of the host's own can be longer; more than there is
// bpf_xdp_load_bytes refuses to copy, at once.)
const packetMax = 9216

// helpers are all that a lambda may call, with about twice the time that they were measured to take.
var helpers = map[asm.BuiltinFunc]helper{
	asm.FnMapLookupElem:     {ns: 40, bytes: keyBytes},
	asm.FnMapUpdateElem:     {ns: 200, bytes: elementBytes},
	asm.FnMapDeleteElem:     {ns: 150, bytes: keyBytes},
	asm.FnXdpLoadBytes:      {ns: 40, bytes: packetBytes, writes: asm.R3},
	asm.FnXdpStoreBytes:     {ns: 40, bytes: packetBytes},
	asm.FnXdpGetBuffLen:     {ns: 10},
	asm.FnXdpAdjustTail:     {ns: 200},
	asm.FnXdpAdjustHead:     {ns: 100},
	asm.FnKtimeGetNs:        {ns: 60},
	asm.FnKtimeGetBootNs:    {ns: 60},
	asm.FnKtimeGetCoarseNs:  {ns: 40},
	asm.FnJiffies64:         {ns: 10},
	asm.FnGetPrandomU32:     {ns: 30},
	asm.FnGetSmpProcessorId: {ns: 10},
	asm.FnSpinLock:          {ns: 200},
	asm.FnSpinUnlock:        {ns: 20},
	asm.FnCsumDiff:          {ns: 40, bytes: sizes(asm.R2, asm.R4)},
	asm.FnStrncmp:           {ns: 20, bytes: sizes(asm.R2)},
}

// Instructions weigh 1, but for these. Loads and stores hit a cache; an atomic operation waits for its line, a division for
// itself.
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
	largest *ebpf.MapSpec // for what is not known
}

// weigh weighs all instructions, callees first.
func (g *graph) weigh(spec *ebpf.CollectionSpec, values []*state) error {
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
			h, ok := helpers[asm.BuiltinFunc(ins.Constant)]
			if !ok {
				return g.refuse(i, "a call of %s, which may take any time", diagnose.Helper(asm.BuiltinFunc(ins.Constant)))
			}
			g.weight[i] = weightCall + h.ns*unitsPerNs
			if h.bytes != nil {
				g.weight[i] += h.bytes(w, values[i]) * unitsPerNs / bytesPerNs
			}
		default:
			g.weight[i] = weightOf(ins)
		}
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

func keyBytes(w *weigher, s *state) uint64 { return uint64(w.mapOf(s).KeySize) }

func elementBytes(w *weigher, s *state) uint64 {
	m := w.mapOf(s)
	return uint64(m.KeySize) + uint64(m.ValueSize)
}

func packetBytes(w *weigher, s *state) uint64 {
	return min(w.size(s[asm.R4]), packetMax)
}

// sizes are arguments that say how long others are.
func sizes(args ...asm.Register) func(*weigher, *state) uint64 {
	return func(w *weigher, s *state) (n uint64) {
		for _, r := range args {
			n += w.size(s[r])
		}
		return n
	}
}

// size bounds an argument that says how long another is: the verifier has seen that the memory is there, and the longest piece of
// memory is the value of a map, or the packet.
func (w *weigher) size(v value) uint64 {
	longest := max(uint64(w.largest.ValueSize), packetMax)
	if v.kind == constant && v.n >= 0 {
		return min(uint64(v.n), longest)
	}
	return longest
}

// add and mul keep sums of hostile programs from wrapping around.
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

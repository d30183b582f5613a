package metering

import (
	"math"
	"math/bits"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// A helper's weight is a fixed part and one for the bytes that it touches.
type helper struct {
	fixed  uint64
	bytes  func(*weigher, *state) uint64
	writes asm.Register // the argument that points to what it writes; r0 if nothing
}

// bytesPerUnit is how much memory a unit of weight pays for. Copies take 10 to 30 bytes in a nanosecond.
const bytesPerUnit = 16

// packetMax is how long packets are: jumbo frames. (Those of a virtual link of the host's own can be longer; more than there is
// bpf_xdp_load_bytes refuses to copy, at once.)
const packetMax = 9216

// helpers are all that a lambda may call. Fixed parts are about twice what they were measured to take.
var helpers = map[asm.BuiltinFunc]helper{
	asm.FnMapLookupElem:     {fixed: 40, bytes: keyBytes},
	asm.FnMapUpdateElem:     {fixed: 200, bytes: elementBytes},
	asm.FnMapDeleteElem:     {fixed: 150, bytes: keyBytes},
	asm.FnXdpLoadBytes:      {fixed: 40, bytes: packetBytes, writes: asm.R3},
	asm.FnXdpStoreBytes:     {fixed: 40, bytes: packetBytes},
	asm.FnXdpGetBuffLen:     {fixed: 10},
	asm.FnXdpAdjustTail:     {fixed: 200},
	asm.FnXdpAdjustHead:     {fixed: 100},
	asm.FnKtimeGetNs:        {fixed: 60},
	asm.FnKtimeGetBootNs:    {fixed: 60},
	asm.FnKtimeGetCoarseNs:  {fixed: 40},
	asm.FnJiffies64:         {fixed: 10},
	asm.FnGetPrandomU32:     {fixed: 30},
	asm.FnGetSmpProcessorId: {fixed: 10},
	asm.FnSpinLock:          {fixed: 200},
	asm.FnSpinUnlock:        {fixed: 20},
	asm.FnCsumDiff:          {fixed: 40, bytes: sizes(asm.R2, asm.R4)},
	asm.FnStrncmp:           {fixed: 20, bytes: sizes(asm.R2)},
}

// Other instructions that take longer than others. An atomic operation waits for the cache line, a division for itself.
const (
	weightDivision = 20
	weightAtomic   = 30
	weightCall     = 5
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
			g.weight[i] = weightCall + h.fixed
			if h.bytes != nil {
				g.weight[i] += h.bytes(w, values[i]) / bytesPerUnit
			}
		default:
			g.weight[i] = weightOf(ins)
		}
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

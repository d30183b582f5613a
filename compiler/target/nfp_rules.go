package target

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// offloaded are the helpers that the firmware has, too (nfp_bpf_check_helper_call in verifier.c). It also has bpf_perf_event_output(),
// which no lambda may call.
var offloaded = []asm.BuiltinFunc{
	asm.FnMapLookupElem, asm.FnMapUpdateElem, asm.FnMapDeleteElem, asm.FnXdpAdjustHead, asm.FnXdpAdjustTail,
	asm.FnGetPrandomU32,
}

// remedies says what to do instead of calling another helper.
var remedies = map[asm.BuiltinFunc]string{
	asm.FnTailCall:          "link all lambdas into one program",
	asm.FnRedirect:          "let the NIC program send it",
	asm.FnXdpLoadBytes:      "read through payload(), a few bytes at a time",
	asm.FnXdpStoreBytes:     "write through payload() or lambda_put(), a few bytes at a time",
	asm.FnXdpGetBuffLen:     "use match_data->payload_len",
	asm.FnKtimeGetNs:        "let the host keep the time",
	asm.FnKtimeGetCoarseNs:  "let the host keep the time",
	asm.FnSpinLock:          "count with atomic additions",
	asm.FnSpinUnlock:        "count with atomic additions",
	asm.FnGetSmpProcessorId: "share one object, and count in it with atomic additions",
	asm.FnLoop:              "write a loop with a small constant bound",
}

// checkInstruction applies the driver's rules to the instruction at index i.
func (c *checker) checkInstruction(i int, s *registers) {
	ins := &c.graph.Insns[i]
	if ins.Dst > asm.R10 || ins.Src > asm.R10 {
		c.violation(i, "compile it again", "an unknown register")
		return
	}
	switch class := ins.OpCode.Class(); {
	case ins.IsKfuncCall(), ins.IsLoadOfFunctionPointer():
		c.violation(i, "write it with the SDK's functions", "a call of a function of the kernel, or back from it")
	case ins.IsBuiltinCall():
		c.checkCall(i, s)
	case ins.OpCode.JumpOp() == asm.JCOND:
		c.violation(i, "give the loop a small constant bound", "a loop that needs fuel, which the card has none of")
	case class.IsALU():
		c.checkALU(i, s)
	case class == asm.LdXClass && ins.OpCode.Mode() == asm.MemSXMode, class == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja:
		c.violation(i, "compile it for -mcpu=v3", "an instruction that the driver does not translate") // instr_cb in jit.c
	case ins.OpCode.IsDWordLoad():
		c.checkAddress(i)
	case class == asm.LdXClass:
		c.checkLoad(i, s)
	case class == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode:
		c.checkAtomic(i, s)
	case class.IsStore():
		c.checkStore(i, s)
	}
}

// checkAddress refuses addresses of variables: values in the card's maps have none (map_direct_value_addr in struct bpf_map_ops).
func (c *checker) checkAddress(i int) {
	ins := &c.graph.Insns[i]
	if ins.Src != asm.PseudoMapValue {
		return
	}
	c.violation(i, "declare a map, look the element up, and change it with bpf_map_update_elem() or atomic additions",
		"a global or static object%s: the card's maps have no addresses", c.objectAt(ins))
}

// objectAt names the variable that an address is in.
func (c *checker) objectAt(ins *asm.Instruction) string {
	offset := uint32(uint64(ins.Constant) >> 32)
	for name, v := range c.spec.Variables {
		if v.SectionName == ins.Reference() && offset >= v.Offset && offset < v.Offset+v.Size() {
			return " (" + name + ")"
		}
	}
	return ""
}

func (c *checker) checkCall(i int, s *registers) {
	fn := asm.BuiltinFunc(c.graph.Insns[i].Constant)
	if !slices.Contains(offloaded, fn) {
		remedy := remedies[fn]
		if remedy == "" {
			remedy = "do without it, or run on target nic"
		}
		c.violation(i, remedy, "a call of %s, which the firmware has not", diagnose.Helper(fn))
		return
	}
	switch fn {
	case asm.FnMapLookupElem, asm.FnMapDeleteElem:
		c.checkArgument(i, "key", s[asm.R2])
	case asm.FnMapUpdateElem:
		c.checkArgument(i, "key", s[asm.R2])
		c.checkArgument(i, "value", s[asm.R3])
		if m := s[asm.R1]; m.kind == mapPointer {
			c.updated[c.graph.Insns[m.from].Reference()] = true
		}
	}
}

// checkUpdated: an update may not set a word of a map that is counted in, unless to a value that the driver knows to be zero
// (nfp_bpf_map_update_value_ok). What it knows of the stack depends on the kernel.
func (c *checker) checkUpdated() {
	for w, u := range c.uses {
		if u == atomic && c.updated[w.name] {
			c.updated[w.name] = false
			c.violation(-1, "let the host make the elements, or count in a map of its own",
				"elements of the map %s are stored by bpf_map_update_elem(), and added to", w.name)
		}
	}
}

// checkArgument: keys and values are on the stack, at constant offsets, aligned to four bytes (nfp_bpf_stack_arg_ok).
func (c *checker) checkArgument(i int, what string, v value) {
	switch {
	case v.kind == anything:
	case v.kind != stack:
		c.violation(i, "copy it to a local variable first", "the map's %s is not in the stack", what)
	case !v.known:
		c.violation(i, "use one local variable for it", "the map's %s is at no constant place in the stack", what)
	case v.n%4 != 0:
		c.violation(i, "align the variable to 4 bytes", "the map's %s is not aligned to 4 bytes", what)
	}
}

// unknownALU are operations that the card's cores do not have (instr_cb in jit.c).
var unknownALU = map[asm.ALUOp]string{
	asm.Mod: "a remainder", asm.SDiv: "a signed division", asm.SMod: "a signed remainder",
	asm.MovSX8: "a sign extension in one instruction", asm.MovSX16: "a sign extension in one instruction",
	asm.MovSX32: "a sign extension in one instruction",
}

// checkALU: products and quotients have 32 bits, and divisors are constants, which become reciprocals (nfp_bpf_check_alu).
func (c *checker) checkALU(i int, s *registers) {
	ins := &c.graph.Insns[i]
	op, wide := ins.OpCode.ALUOp(), ins.OpCode.Class() == asm.ALU64Class
	fromReg := ins.OpCode.Source() == asm.RegSource
	if what, ok := unknownALU[op]; ok {
		c.violation(i, "divide by a power of two, unsigned, or shift", "%s, which the card cannot compute", what)
		return
	}
	if op == asm.Swap && (wide || ins.OpCode.Endianness() != asm.BE) { // end_reg32 converts only to big-endian
		c.violation(i, "use bpf_htons() and its kin", "a swap of bytes other than to network order")
		return
	}
	if op != asm.Mul && op != asm.Div {
		return
	}
	large := func(v value) bool { return wide && v.kind == number && !v.small }
	if large(s[ins.Dst]) || fromReg && large(s[ins.Src]) || wide && !fromReg && ins.Constant < 0 {
		c.violation(i, "use uint32_t", "a product or quotient of what may not fit in 32 bits")
	}
	if op == asm.Div && fromReg && !s[ins.Src].known {
		c.violation(i, "divide by a constant, or shift", "a division by what is not constant")
	}
}

// checkLoad: the context is read only for where the packet begins and ends (mem_ldx_xdp in jit.c), map values only at constant offsets.
func (c *checker) checkLoad(i int, s *registers) {
	ins := &c.graph.Insns[i]
	base := s[ins.Src]
	switch {
	case base.kind == context && ins.Offset != 0 && ins.Offset != 4:
		c.violation(i, "use the packet alone", "a field of the context other than where the packet begins and ends")
	case base.kind == mapValue:
		c.mark(i, base, ins, read)
	}
	c.checkPointer(i, base, ins)
}

func (c *checker) checkStore(i int, s *registers) {
	base := s[c.graph.Insns[i].Dst]
	switch base.kind {
	case mapValue:
		c.violation(i, "use bpf_map_update_elem(), or an atomic addition", "a store to a map's element")
	case context: // nfp_bpf_check_store accepts rx_queue_index, which kernels let programs change only on a card
		c.violation(i, "leave the context as it is", "a store to the context")
	}
	c.checkPointer(i, base, &c.graph.Insns[i])
}

// checkPointer: an instruction accesses one kind of memory, the stack at constant offsets, and the packet only as far as it is on the
// card's cores.
func (c *checker) checkPointer(i int, base value, ins *asm.Instruction) {
	switch {
	case base.kind == several:
		c.violation(i, "access each in a branch of its own", "an access to memory of different kinds")
	case base.kind == stack && !base.known:
		c.violation(i, "use a constant index, a switch, or a map", "a local array with a variable index")
	case base.kind == packet && base.known && int(base.n)+int(ins.Offset)+ins.OpCode.Size().Sizeof() > c.offload.Packet:
		c.violation(i, fmt.Sprintf("read only the first %d bytes of packets", c.offload.Packet), "an access far into the packet")
	}
}

// checkAtomic: only additions, only to values of maps (nfp_bpf_check_atomic).
func (c *checker) checkAtomic(i int, s *registers) {
	ins := &c.graph.Insns[i]
	base := s[ins.Dst]
	switch {
	case ins.OpCode.AtomicOp() != asm.AddAtomic:
		c.violation(i, "use __sync_fetch_and_add(), and not its result", "an atomic operation other than an addition without result")
	case base.kind == mapValue:
		c.mark(i, base, ins, atomic)
	case base.kind != anything:
		c.violation(i, "put what is counted into a map", "an atomic addition outside of map elements")
	}
}

// A word of a map's values is either counted in or not: the card's atomic additions are big-endian.
type word struct {
	name   string
	offset int32
}

type use string

const (
	read   use = "read"
	atomic use = "added to"
)

// mark notes the use of the words that an access covers (nfp_bpf_map_mark_used).
func (c *checker) mark(i int, base value, ins *asm.Instruction, u use) {
	if !base.known {
		c.violation(i, "access it at a constant place, or look up a smaller element", "a map's element accessed at a variable place")
		return
	}
	name := c.graph.Insns[base.from].Reference()
	from := base.n + int32(ins.Offset)
	for at := from &^ 3; at < from+int32(ins.OpCode.Size().Sizeof()); at += 4 {
		if old, ok := c.uses[word{name, at}]; ok && old != u {
			c.violation(i, "keep counters and what is read in different words, and read counters on the host only",
				"a word of the map %s is %s here and %s elsewhere", name, u, old)
			return
		}
		c.uses[word{name, at}] = u
	}
}

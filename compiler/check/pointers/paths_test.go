package pointers

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// told is what a program does on one side of a branch alone.
var told = asm.StoreImm(asm.R9, 0, 1, asm.Word)

// chosen puts a number of the client's into a register.
func chosen(r asm.Register) asm.Instruction { return asm.LoadMem(r, asm.R9, 8, asm.DWord) }

// never wraps instructions that never run. The verifier knows that; the control flow alone does not show it.
func never(ins ...asm.Instruction) asm.Instructions {
	return slices.Concat(asm.Instructions{asm.Mov.Imm(asm.R5, 1), asm.And.Imm(asm.R5, 1), asm.JNE.Imm(asm.R5, 0, "meet")}, ins)
}

// paths is program() of pieces, with the element's address in r9, too. What follows never() begins at "meet".
func paths(pieces ...any) asm.Instructions {
	body, meet := asm.Instructions{asm.Mov.Reg(asm.R9, asm.R0)}, false
	add := func(ins asm.Instruction) {
		if meet {
			ins = ins.WithSymbol("meet")
		}
		body, meet = append(body, ins), false
	}
	for _, piece := range pieces {
		switch piece := piece.(type) {
		case asm.Instruction:
			add(piece)
		case asm.Instructions:
			for _, ins := range piece {
				add(ins)
			}
			meet = len(piece) > 0 && slices.ContainsFunc(piece, func(ins asm.Instruction) bool { return ins.Reference() == "meet" })
		}
	}
	if !isExit(&body[len(body)-1]) {
		body = append(body, asm.Ja.Label("out")) // past the functions
	}
	return program(body...)
}

// atomic is an atomic operation as it is in an object file: the library keeps the operation in the constant.
func atomic(op asm.AtomicOp, dst, src asm.Register, offset int16) asm.Instruction {
	ins := op.Mem(dst, src, asm.DWord, offset)
	ins.Constant = int64(op >> 8)
	return ins
}

// extend moves the low bytes of a register, sign-extended.
func extend(op asm.ALUOp, dst, src asm.Register) asm.Instruction {
	return asm.Instruction{OpCode: op.Op(asm.RegSource), Dst: dst, Src: src}
}

func fill(r asm.Register, at int16) asm.Instruction  { return asm.LoadMem(r, asm.RFP, at, asm.DWord) }
func spill(at int16, r asm.Register) asm.Instruction { return asm.StoreMem(asm.RFP, at, r, asm.DWord) }

func zero(at int16) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R1, 0), spill(at, asm.R1)}
}

// find looks up a missing element: r0 is NULL, which the verifier does not know.
var find = asm.Instructions{
	asm.Mov.Imm(asm.R1, 9), spill(-16, asm.R1),
	asm.LoadMapPtr(asm.R1, 0).WithReference("hash"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16), asm.FnMapLookupElem.Call(),
}

// loadBytes copies from the packet to the frame.
func loadBytes(offset, at, n int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, offset), asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, at), asm.Mov.Imm(asm.R4, n),
		asm.FnXdpLoadBytes.Call(),
	}
}

// shrink takes a byte from the packet's end, after which the verifier takes pointers into the packet for numbers.
var shrink = asm.Instructions{asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, -1), asm.FnXdpAdjustTail.Call()}

// search halves the range of the address in r1, by r7 and a number of the client's.
var search = asm.Instructions{asm.JGT.Reg(asm.R7, asm.R1, "out"), told}

// A number that may be a pointer, on a path that is never taken, must not be compared with a pointer.
func TestNumbersPassForNoPointers(t *testing.T) {
	callee := func(name string, args ...asm.Instruction) asm.Instructions { return append(args, asm.Call.Label(name)) }
	frameAt := func(at int32) asm.Instructions {
		return asm.Instructions{asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, at)}
	}
	for name, p := range map[string]asm.Instructions{
		"in a register":       paths(chosen(asm.R1), never(asm.Mov.Reg(asm.R1, asm.R7)), search),
		"in a register, NULL": paths(chosen(asm.R1), never(asm.Mov.Reg(asm.R1, asm.R7)), asm.JEq.Imm(asm.R1, 0, "out"), search),
		"taken away":          paths(chosen(asm.R1), never(asm.Mov.Reg(asm.R1, asm.R7)), asm.Sub.Reg32(asm.R7, asm.R1), asm.StoreMem(asm.R9, 0, asm.R7, asm.DWord)),
		"taken from": paths(chosen(asm.R1), asm.Mov.Reg(asm.R2, asm.R7), never(asm.Mov.Reg(asm.R1, asm.R7)), asm.Sub.Reg32(asm.R1, asm.R2),
			asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)),
		"in a slot":               paths(chosen(asm.R1), spill(-16, asm.R1), never(spill(-16, asm.R7)), fill(asm.R1, -16), search),
		"in half a slot":          paths(zero(-16), never(spill(-16, asm.R7)), asm.LoadMem(asm.R1, asm.RFP, -16, asm.Word), search),
		"NULL in a slot":          paths(zero(-16), never(spill(-16, asm.R7)), fill(asm.R1, -16), asm.Add.Imm(asm.R1, 1), search),
		"through a place":         paths(asm.Mov.Reg(asm.R2, asm.R9), never(asm.Mov.Reg(asm.R2, asm.R6)), asm.LoadMem(asm.R1, asm.R2, 0, asm.Word), search),
		"through a frame":         paths(chosen(asm.R1), spill(-16, asm.R1), frameAt(-16), never(asm.Mov.Reg(asm.R1, asm.R6)), asm.LoadMem(asm.R1, asm.R1, 0, asm.Word), search),
		"from a function":         paths(chosen(asm.R1), never(asm.Mov.Reg(asm.R1, asm.R7)), callee("same"), asm.JGT.Reg(asm.R7, asm.R0, "out"), told),
		"of a failed look":        paths(find, asm.Mov.Reg(asm.R6, asm.R0), asm.JNE.Imm(asm.R0, 0, "out"), chosen(asm.R1), asm.Add.Reg(asm.R1, asm.R6), search),
		"of a failed look, known": paths(find, asm.Mov.Reg(asm.R1, asm.R0), asm.JNE.Imm(asm.R1, 0, "out"), chosen(asm.R2), asm.Add.Reg(asm.R1, asm.R2), search),
		"of a failed look, aside": paths(find, spill(-24, asm.R0), asm.JNE.Imm(asm.R0, 0, "out"), fill(asm.R1, -24), chosen(asm.R2), asm.Add.Reg(asm.R1, asm.R2),
			search),
		"written by a function": paths(spill(-16, asm.R7), callee("clear", frameAt(-16)...), fill(asm.R1, -16), chosen(asm.R2), asm.Add.Reg(asm.R1, asm.R2), search),
		"written through a pointer in the frame": paths(spill(-16, asm.R7), asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -16), spill(-24, asm.R1),
			callee("clear_there", frameAt(-24)...), fill(asm.R1, -16), chosen(asm.R2), asm.Add.Reg(asm.R1, asm.R2), search),
		"half of it zero":         paths(chosen(asm.R1), asm.JNE.Imm32(asm.R1, 0, "out"), search),
		"below zero":              paths(chosen(asm.R1), asm.JSGT.Imm(asm.R1, 0, "out"), search),
		"as another":              paths(chosen(asm.R1), asm.Mov.Reg(asm.R2, asm.R1), asm.JNE.Reg(asm.R1, asm.R2, "out"), search),
		"not as zero":             paths(chosen(asm.R1), asm.JNE.Imm(asm.R1, -1, "out"), search),
		"zero or not":             paths(chosen(asm.R1), asm.Instructions{asm.JEq.Imm(asm.R1, 0, "meet")}, search),
		"zero, by the other path": paths(chosen(asm.R1), asm.JEq.Imm(asm.R1, 0, "out"), search),
		"for an atomic exchange": paths(chosen(asm.R0), spill(-16, asm.R0), never(asm.Mov.Reg(asm.R0, asm.R7)), chosen(asm.R1),
			atomic(asm.CmpXchg, asm.R9, asm.R1, 0)),
	} {
		t.Run(name, func(t *testing.T) { refuse(t, p) })
	}
}

// A pointer of one kind does not pass for a pointer of another kind.
func TestPointersPassForNoOthers(t *testing.T) {
	frame := asm.Instructions{asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -16)}
	load := asm.Instructions{asm.LoadMem(asm.R1, asm.R1, 0, asm.Word), asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)}
	for name, p := range map[string]asm.Instructions{
		"the context for the stack": paths(zero(-16), asm.Mov.Reg(asm.R1, asm.R6), never(frame...), load),
		"the context for memory":    paths(asm.Mov.Reg(asm.R1, asm.R6), never(asm.Mov.Reg(asm.R1, asm.R9)), load),
		"the stack for memory": paths(spill(-16, asm.R6), frame, never(asm.Mov.Reg(asm.R1, asm.R9)), asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord),
			asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)),
		"memory for the stack":      paths(asm.Mov.Reg(asm.R1, asm.R9), never(frame...), asm.StoreMem(asm.R1, 0, asm.R7, asm.DWord)),
		"memory for the packet":     paths(asm.Mov.Reg(asm.R1, asm.R9), never(asm.Mov.Reg(asm.R1, asm.R7)), search),
		"a place for another":       paths(spill(-16, asm.R6), zero(-24), frame, never(asm.Add.Imm(asm.R1, -8)), asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)),
		"memory for one of several": paths(asm.Mov.Reg(asm.R1, asm.R9), never(asm.Mov.Reg(asm.R1, asm.R6)), asm.JGT.Reg(asm.R9, asm.R1, "out"), told),
		"a map's description":       paths(asm.LoadMapPtr(asm.R1, 0).WithReference("array"), asm.LoadMem(asm.R1, asm.R1, 0, asm.DWord), asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)),
		"a frame's own address":     paths(frame, asm.Mov.Reg(asm.R2, asm.R9), asm.Call.Label("tell")),
		"a context that may be an old pointer": paths(asm.Mov.Reg(asm.R7, asm.R6), never(asm.LoadMem(asm.R7, asm.R6, 0, asm.Word)), shrink,
			asm.LoadMem(asm.R1, asm.R7, 0, asm.Word), asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)),
		"the frame of a caller":       paths(spill(-16, asm.R6), frame, asm.Call.Label("read"), asm.StoreMem(asm.R9, 0, asm.R0, asm.DWord)),
		"a helper's memory for stack": paths(spill(-16, asm.R6), asm.Mov.Reg(asm.R2, asm.R9), never(asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16)), asm.LoadMapPtr(asm.R1, 0).WithReference("hash"), asm.FnMapDeleteElem.Call()),
	} {
		t.Run(name, func(t *testing.T) { refuse(t, p) })
	}
}

// What the verifier takes for a number can still be an address.
func TestStrayAddressesAreRefused(t *testing.T) {
	kept := asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)
	wrap := asm.Instructions{ // where the sum of an address and a number begins anew
		chosen(asm.R1), asm.Add.Reg(asm.R1, asm.R7), asm.LoadMem(asm.R2, asm.R6, 0, asm.Word), asm.JGT.Reg(asm.R2, asm.R1, "out"), told,
	}
	somewhere := asm.Instructions{ // in the frame's last two slots
		chosen(asm.R1), asm.And.Imm(asm.R1, 8), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16), asm.Add.Reg(asm.R2, asm.R1),
	}
	for name, p := range map[string]asm.Instructions{
		"on the stack":                paths(fill(asm.R1, -256), kept),
		"on the stack, a part":        paths(asm.LoadMem(asm.R1, asm.RFP, -256, asm.Byte), kept),
		"on the stack, a part's rest": paths(asm.StoreImm(asm.RFP, -256, 1, asm.Word), asm.LoadMem(asm.R1, asm.RFP, -252, asm.Word), kept),
		"on the stack, for an element": paths(asm.LoadMapPtr(asm.R1, 0).WithReference("hash"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -256),
			asm.Mov.Reg(asm.R3, asm.R9), asm.Mov.Imm(asm.R4, 0), asm.FnMapUpdateElem.Call()),
		"on the stack, for a sum": paths(asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -256), asm.Mov.Imm(asm.R2, 64), asm.Mov.Imm(asm.R3, 0), asm.Mov.Imm(asm.R4, 0),
			asm.Mov.Imm(asm.R5, 0), asm.FnCsumDiff.Call(), asm.StoreMem(asm.R9, 0, asm.R0, asm.DWord)),
		"on the stack, by addition":       paths(asm.Mov.Imm(asm.R1, 1), atomic(asm.FetchAdd, asm.RFP, asm.R1, -256), kept),
		"on the stack, in a branch":       paths(fill(asm.R1, -256), asm.JEq.Imm(asm.R1, 0, "out"), told),
		"on the stack, answered":          paths(fill(asm.R0, -256), asm.Return()),
		"on a function's stack":           paths(asm.Call.Label("leftovers"), asm.StoreMem(asm.R9, 0, asm.R0, asm.DWord)),
		"where a helper wrote nothing":    paths(loadBytes(30000, -256, 8), fill(asm.R1, -256), kept),
		"where it left a pointer":         paths(spill(-16, asm.R6), loadBytes(30000, -16, 8), fill(asm.R1, -16), kept),
		"where it left half":              paths(spill(-16, asm.R6), loadBytes(30000, -16, 4), asm.LoadMem(asm.R1, asm.RFP, -16, asm.Word), kept),
		"in an old pointer":               paths(shrink, wrap),
		"in an old pointer, by equality":  paths(shrink, chosen(asm.R1), asm.Add.Reg(asm.R1, asm.R7), asm.JEq.Imm(asm.R1, 0, "out"), told),
		"in an old pointer, put aside":    paths(spill(-16, asm.R7), shrink, fill(asm.R7, -16), wrap),
		"in an old pointer of a caller's": paths(asm.Mov.Reg(asm.R1, asm.R6), asm.Call.Label("shrink"), wrap),
		"in a torn pointer":               paths(spill(-16, asm.R7), asm.StoreImm(asm.RFP, -16, 1, asm.Half), fill(asm.R1, -16), search),
		"in a torn pointer, kept":         paths(spill(-16, asm.R7), asm.StoreImm(asm.RFP, -16, 1, asm.Half), fill(asm.R1, -16), kept),
		"in one torn somewhere":           paths(zero(-8), spill(-16, asm.R7), somewhere, asm.StoreImm(asm.R2, 0, 1, asm.Byte), fill(asm.R1, -16), search),
		"read from somewhere":             paths(zero(-8), spill(-16, asm.R7), somewhere, asm.LoadMem(asm.R1, asm.R2, 0, asm.DWord), kept),
		"as the verdict":                  paths(asm.Mov.Reg(asm.R0, asm.R7), asm.Return()),
		"in the order of two memories":    paths(chosen(asm.R1), asm.And.Imm(asm.R1, 0xffffff), asm.Mov.Reg(asm.R2, asm.R9), asm.Add.Reg(asm.R2, asm.R1), asm.JGT.Reg(asm.R2, asm.R6, "out"), told),
		"sign extended":                   paths(extend(asm.MovSX32, asm.R1, asm.R7), kept),
		"negated":                         paths(asm.Neg.Imm(asm.R7, 0), asm.Mov.Reg(asm.R1, asm.R7), kept),
		"its bytes swapped":               paths(asm.HostTo(asm.BE, asm.R7, asm.DWord), asm.Mov.Reg(asm.R1, asm.R7), kept),
		"by bits of it":                   paths(asm.JSet.Imm(asm.R7, 64, "out"), told),
		"by bits of it, from NULL":        paths(asm.JSet.Imm(asm.R7, 0, "out"), told),
	} {
		t.Run(name, func(t *testing.T) { refuse(t, p) })
	}
}

// Addresses near a context or a map are not followed.
func TestMovedContextsAreRefused(t *testing.T) {
	for name, p := range map[string]asm.Instructions{
		"by a number":        paths(asm.Add.Imm(asm.R6, 4)),
		"back by a number":   paths(asm.Sub.Imm(asm.R6, -4)),
		"in another's place": paths(asm.Mov.Imm(asm.R1, 4), asm.Add.Reg(asm.R1, asm.R6)),
	} {
		t.Run(name, func(t *testing.T) { refuse(t, p) })
	}
}

// What is right on all paths passes, and what becomes a number again counts as one.
func TestPathsThatMeetPass(t *testing.T) {
	either := func(ins ...asm.Instruction) asm.Instructions { // the verifier knows as little as anyone
		return slices.Concat(asm.Instructions{chosen(asm.R5), asm.JNE.Imm(asm.R5, 0, "meet")}, ins)
	}
	kept := asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)
	frame := asm.Instructions{asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -24)}
	for name, p := range map[string]asm.Instructions{
		"NULL or a place in the packet": paths(asm.Mov.Imm(asm.R1, 0), either(asm.Mov.Reg(asm.R1, asm.R7)), asm.JEq.Imm(asm.R1, 0, "out"), asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"which was put aside": paths(zero(-16), either(spill(-16, asm.R7)), fill(asm.R1, -16), asm.JEq.Imm(asm.R1, 0, "out"),
			asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"an element or none":             paths(find, spill(-24, asm.R0), fill(asm.R1, -24), asm.JEq.Imm(asm.R1, 0, "out"), asm.StoreImm(asm.R1, 0, 1, asm.Word)),
		"a copy of it":                   paths(find, asm.Mov.Reg(asm.R7, asm.R0), asm.JEq.Imm(asm.R0, 0, "out"), asm.StoreImm(asm.R7, 0, 1, asm.Word)),
		"one of two elements":            paths(find, asm.JNE.Imm(asm.R0, 0, "meet"), asm.Mov.Reg(asm.R0, asm.R9), asm.StoreImm(asm.R0, 0, 1, asm.Word).WithSymbol("meet")),
		"a pointer taken out of a slot":  paths(spill(-16, asm.R7), zero(-16), fill(asm.R1, -16), kept),
		"a number of two halves":         paths(asm.StoreImm(asm.RFP, -16, 1, asm.Word), asm.StoreImm(asm.RFP, -12, 1, asm.Word), fill(asm.R1, -16), kept),
		"a byte beside leftovers":        paths(asm.StoreImm(asm.RFP, -16, 1, asm.Byte), asm.LoadMem(asm.R1, asm.RFP, -16, asm.Byte), kept),
		"what a helper wrote":            paths(zero(-16), loadBytes(0, -16, 8), fill(asm.R1, -16), kept),
		"the packet, after it shrank":    paths(shrink, asm.LoadMem(asm.R7, asm.R6, 0, asm.Word), asm.LoadMem(asm.R8, asm.R6, 4, asm.Word), asm.Sub.Reg(asm.R8, asm.R7), asm.StoreMem(asm.R9, 0, asm.R8, asm.DWord)),
		"a pointer beside what shrank":   paths(shrink, told),
		"a frame given to a function":    paths(zero(-24), frame, asm.Call.Label("clear"), told),
		"what stays in the frame":        paths(spill(-16, asm.R7), zero(-24), frame, asm.Call.Label("read"), fill(asm.R1, -16), asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"a context put aside":            paths(spill(-16, asm.R6), fill(asm.R1, -16), asm.LoadMem(asm.R1, asm.R1, 0, asm.Word), asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"where the packet came from":     paths(asm.LoadMem(asm.R1, asm.R6, 12, asm.Word), kept),
		"an atomic exchange":             paths(asm.Mov.Imm(asm.R0, 1), chosen(asm.R1), atomic(asm.CmpXchg, asm.R9, asm.R1, 0), asm.StoreMem(asm.R9, 8, asm.R0, asm.DWord)),
		"what was fetched":               paths(asm.Mov.Imm(asm.R1, 1), atomic(asm.FetchAdd, asm.R9, asm.R1, 0), kept),
		"a sum on the stack":             paths(zero(-16), asm.Mov.Imm(asm.R1, 1), atomic(asm.AddAtomic, asm.RFP, asm.R1, -16), fill(asm.R1, -16), kept),
		"leftovers that nobody looks at": paths(fill(asm.R1, -256), spill(-264, asm.R1)),
		"zero, of a number":              paths(chosen(asm.R1), asm.JNE.Imm(asm.R1, 0, "out"), asm.Add.Reg(asm.R1, asm.R7), asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"a function that forgets":        paths(asm.Mov.Reg(asm.R1, asm.R7), asm.Call.Label("forget"), asm.StoreMem(asm.R9, 0, asm.R0, asm.DWord)),
		"the verdict of a function":      paths(asm.Mov.Imm(asm.R1, 2), asm.Call.Label("same"), asm.Return()),
		"a number and a place":           paths(chosen(asm.R1), asm.And.Imm(asm.R1, 7), asm.Add.Reg(asm.R1, asm.R7), asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"nothing and a place":            paths(asm.Mov.Imm(asm.R1, 0), asm.Add.Reg(asm.R1, asm.R7), asm.JGT.Reg(asm.R1, asm.R8, "out"), told),
		"a place and nothing":            paths(asm.Mov.Imm(asm.R1, 0), asm.Add.Reg(asm.R7, asm.R1), asm.JGT.Reg(asm.R7, asm.R8, "out"), told),
		"numbers":                        paths(chosen(asm.R1), asm.And.Imm(asm.R1, 7), asm.Mul.Imm(asm.R1, 3), asm.Add.Imm32(asm.R1, 1), asm.Neg.Imm(asm.R1, 0), kept),
		"a number in a pointer's place":  paths(chosen(asm.R1), asm.Mov.Reg32(asm.R7, asm.R1), asm.StoreMem(asm.R9, 0, asm.R7, asm.DWord)),
		"a byte in a pointer's place":    paths(chosen(asm.R1), extend(asm.MovSX8, asm.R7, asm.R1), asm.StoreMem(asm.R9, 0, asm.R7, asm.DWord)),
		"two bytes in a pointer's place": paths(chosen(asm.R1), extend(asm.MovSX16, asm.R7, asm.R1), asm.StoreMem(asm.R9, 0, asm.R7, asm.DWord)),
		"a word in a pointer's place":    paths(chosen(asm.R1), extend(asm.MovSX32, asm.R7, asm.R1), asm.StoreMem(asm.R9, 0, asm.R7, asm.DWord)),
		"a number swapped":               paths(chosen(asm.R1), asm.HostTo(asm.BE, asm.R1, asm.DWord), kept),
		"a place given and returned":     paths(asm.Mov.Reg(asm.R1, asm.R9), asm.Call.Label("same"), asm.StoreImm(asm.R0, 0, 1, asm.Word)),
	} {
		t.Run(name, func(t *testing.T) { pass(t, p) })
	}
}

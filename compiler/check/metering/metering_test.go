package metering

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// Pieces of programs.

const testSlot = -8

func initAt(slot int16) asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R2, 0, 0).WithReference(FuelMap),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
		asm.StoreMem(asm.R10, slot, asm.R2, asm.DWord),
	}
}

// chargeOf is a charge whose first instruction has the given label.
func chargeOf(label string, slot int16, cost int32, spent string) asm.Instructions {
	return asm.Instructions{
		asm.LoadMem(asm.R3, asm.R10, slot, asm.DWord).WithSymbol(label),
		asm.Add.Imm(asm.R3, -cost),
		asm.StoreMem(asm.R10, slot, asm.R3, asm.DWord),
		asm.JSLT.Imm(asm.R3, 0, spent),
		mayGotoTo(spent),
	}
}

func mayGotoTo(label string) asm.Instruction {
	return asm.Instruction{OpCode: mayGoto, Offset: -1}.WithReference(label)
}

func leave(label string) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 2).WithSymbol(label), asm.Return()}
}

// join makes a program. If its first instruction has a label, another instruction is put before it.
func join(parts ...asm.Instructions) asm.Instructions {
	if parts[0][0].Symbol() != "" {
		return labelled("lambda", parts...)
	}
	all := slices.Concat(parts...)
	all[0] = all[0].WithSymbol("lambda")
	return all
}

func labelled(name string, parts ...asm.Instructions) asm.Instructions {
	return append(one(asm.Mov.Imm(asm.R1, 9).WithSymbol(name)), slices.Concat(parts...)...)
}

// storeNumber stores eight bytes.
func storeNumber(to asm.Register, offset int16) asm.Instruction {
	return asm.Instruction{OpCode: asm.OpCode(asm.StClass) | asm.OpCode(asm.MemMode) | asm.OpCode(asm.DWord), Dst: to, Offset: offset, Constant: 1}
}

func one(ins ...asm.Instruction) asm.Instructions { return ins }

func collection(insns asm.Instructions) *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{
			FuelMap: {Name: FuelMap, Type: ebpf.Array, KeySize: 4, ValueSize: fuelSize, MaxEntries: 1},
			"table": {Name: "table", Type: ebpf.Hash, KeySize: 4, ValueSize: 1 << 16, MaxEntries: 1},
		},
		Programs: map[string]*ebpf.ProgramSpec{
			"lambda": {Name: "lambda", Type: ebpf.XDP, License: "GPL", Instructions: insns},
		},
	}
}

// endless is a metered while (1): a loop that weighs nine.
func endless(cost int32) asm.Instructions {
	return join(
		initAt(testSlot),
		chargeOf("loop", testSlot, cost, "out"),
		one(asm.Add.Imm(asm.R1, 1), asm.Ja.Label("loop")),
		leave("out"),
	)
}

func TestAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		insns asm.Instructions
		debt  uint64
	}{
		"no loop":              {join(leave("out")), 3},
		"a loop that is paid":  {endless(9), 5 + 9},
		"a loop that overpays": {endless(1000), 5 + 9},
		"a key below the fuel": {join(initAt(-8), one(keyAt(-16)...), chargeOf("loop", -8, 8, "out"), one(asm.Ja.Label("loop")), leave("out")), 5 + 6 + 125 + 1 + 9},
		"a buffer above the fuel": {join(one(asm.Mov.Reg(asm.R6, asm.R1)), initAt(-64), bufferAt(-56),
			chargeOf("loop", -64, 8, "out"), one(asm.Ja.Label("loop")), leave("out")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bounds, err := Check(collection(c.insns))
			if err != nil {
				t.Fatal(err)
			}
			if got := bounds["lambda"].Debt; c.debt != 0 && got > c.debt {
				t.Errorf("debt %d, want at most %d", got, c.debt)
			}
		})
	}
}

// keyAt looks an element up by a key in the stack.
func keyAt(at int32) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.R10, int16(at), 0, asm.Word),
		asm.Mov.Reg(asm.R2, asm.R10),
		asm.Add.Imm(asm.R2, at),
		asm.LoadMapPtr(asm.R1, 0).WithReference("table"),
		asm.FnMapLookupElem.Call(),
	}
}

// bufferAt copies 40 bytes of the packet, whose context is in r6, to the stack.
func bufferAt(at int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6),
		asm.Mov.Imm(asm.R2, 0),
		asm.Mov.Reg(asm.R3, asm.R10),
		asm.Add.Imm(asm.R3, at),
		asm.Mov.Imm(asm.R4, 40),
		asm.FnXdpLoadBytes.Call(),
	}
}

// before puts instructions between init and the loop of endless, within those into the loop.
func before(ins ...asm.Instruction) asm.Instructions {
	return join(initAt(testSlot), ins, chargeOf("loop", testSlot, 100, "out"), one(asm.Ja.Label("loop")), leave("out"))
}

func within(ins ...asm.Instruction) asm.Instructions {
	return join(initAt(testSlot), chargeOf("loop", testSlot, 1000, "out"), ins, one(asm.Ja.Label("loop")), leave("out"))
}

func calls(body asm.Instructions) asm.Instructions {
	return join(initAt(testSlot), chargeOf("loop", testSlot, 1000, "out"),
		one(asm.Call.Label("function"), asm.Ja.Label("loop")), leave("out"), body)
}

func global(body asm.Instructions) asm.Instructions {
	body[0] = btf.WithFuncMetadata(body[0], &btf.Func{
		Name: "function", Linkage: btf.GlobalFunc,
		Type: &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}},
	})
	return body
}

// Each program tries to run longer than it is allowed to.
func TestRefused(t *testing.T) {
	spill := asm.StoreMem
	for name, c := range map[string]struct {
		insns asm.Instructions
		why   string
	}{
		"may_goto alone": {join(one(asm.Add.Imm(asm.R1, 1).WithSymbol("loop"), mayGotoTo("out"), asm.Ja.Label("loop")), leave("out")),
			"unmetered loop"},
		"may_goto besides": {within(mayGotoTo("out")), "unmetered loop"},
		"may_goto first":   {join(one(mayGotoTo("out")), leave("out")), "unmetered loop"},
		"may_goto in a subprogram": {calls(labelled("function", chargeOf("again", testSlot, 10, "end"), one(asm.Ja.Label("again")), leave("end"))),
			"unmetered loop"},
		"a cost too small":  {endless(8), "more than it is charged"},
		"a cost of nothing": {endless(0), "unmetered loop"},
		"a cost below zero": {endless(-7), "unmetered loop"},
		"no init":           {join(chargeOf("loop", testSlot, 10, "out"), one(asm.Ja.Label("loop")), leave("out")), "nowhere filled"},
		"init of another slot": {join(initAt(-16), chargeOf("loop", testSlot, 10, "out"), one(asm.Ja.Label("loop")), leave("out")),
			"another use"},
		"init in the loop": {within(initAt(testSlot)...), "another use"},
		"init alone in a loop": {join(one(asm.Mov.Imm(asm.R1, 1).WithSymbol("top")), initAt(testSlot), chargeOf("loop", testSlot, 10, "top"),
			leave("out")), "jump into what fills"},
		"init after a branch": {join(one(asm.JEq.Imm(asm.R1, 0, "loop")), initAt(testSlot), chargeOf("loop", testSlot, 10, "out"),
			one(asm.Ja.Label("loop")), leave("out")), "where it need not be"},
		"a second slot": {join(initAt(testSlot), chargeOf("loop", testSlot, 10, "out"), one(asm.Ja.Label("loop")),
			chargeOf("out", -16, 10, "end"), leave("end")), "second slot"},
		"fuel out of the stack": {join(initAt(0), chargeOf("loop", 0, 10, "out"), one(asm.Ja.Label("loop")), leave("out")), "unmetered loop"},

		"a loop without a charge": {before(asm.Add.Imm(asm.R1, 1).WithSymbol("free"), asm.Ja.Label("free")), "without a charge"},
		"a loop within without a charge": {within(asm.Add.Imm(asm.R1, 1).WithSymbol("free"), asm.JNE.Imm(asm.R1, 0, "free")),
			"without a charge"},
		"a loop of failed charges": {join(initAt(testSlot), chargeOf("a", testSlot, 100, "b"), one(asm.Ja.Label("a")),
			chargeOf("b", testSlot, 100, "a"), leave("out")), "without a charge"},
		"a loop in a subprogram": {calls(labelled("function", one(asm.Add.Imm(asm.R1, 1).WithSymbol("free"), asm.JNE.Imm(asm.R1, 0, "free")), leave("end"))),
			"without a charge"},
		"a recursion": {calls(labelled("function", one(asm.Call.Label("function")), leave("end"))), "recursion"},

		"a jump into a charge":   {intoCharge(), "jump into what"},
		"a store over the fuel":  {within(spill(asm.R10, testSlot, asm.R1, asm.DWord)), "store over the fuel"},
		"a number over the fuel": {within(storeNumber(asm.R10, testSlot)), "store over the fuel"},
		"a byte over its end":    {within(asm.StoreImm(asm.R10, testSlot+7, 1, asm.Byte)), "store over the fuel"},
		"a store over its beginning": {join(initAt(-16), chargeOf("loop", -16, 100, "out"),
			one(storeNumber(asm.R10, -20), asm.Ja.Label("loop")), leave("out")), "store over the fuel"},
		"an atomic over the fuel": {within(asm.AddAtomic.Mem(asm.R10, asm.R1, asm.DWord, testSlot)), "store over the fuel"},
		"a pointer to the fuel": {within(asm.Mov.Reg(asm.R4, asm.R10), asm.Add.Imm(asm.R4, testSlot), spill(asm.R4, 0, asm.R1, asm.DWord)),
			"store over the fuel"},
		"a pointer from elsewhere": {within(asm.Mov.Reg(asm.R4, asm.R10), asm.Add.Imm(asm.R4, -24), asm.Add.Imm(asm.R4, 8), spill(asm.R4, 8, asm.R1, asm.DWord)),
			"store over the fuel"},
		"a pointer moved by a register": {within(asm.Mov.Reg(asm.R4, asm.R10), asm.Add.Reg(asm.R4, asm.R5), spill(asm.R4, 0, asm.R1, asm.DWord)),
			"not followed"},
		"a register moved by a pointer": {within(asm.Add.Reg(asm.R5, asm.R10), spill(asm.R5, 0, asm.R1, asm.DWord)), "not followed"},
		"a pointer of two paths": {within(asm.Mov.Reg(asm.R4, asm.R10), asm.JEq.Imm(asm.R1, 0, "skip"), asm.Add.Imm(asm.R4, -8),
			spill(asm.R4, 0, asm.R1, asm.DWord).WithSymbol("skip")), "not followed"},
		"a pointer that walks": {join(initAt(testSlot), one(asm.Mov.Reg(asm.R4, asm.R10), asm.Add.Imm(asm.R4, -64)),
			chargeOf("loop", testSlot, 100, "out"), one(spill(asm.R4, 0, asm.R1, asm.DWord), asm.Add.Imm(asm.R4, 8), asm.Ja.Label("loop")), leave("out")),
			"not followed"},
		"a pointer in the stack":  {within(spill(asm.R10, -16, asm.R10, asm.DWord)), "is stored"},
		"a pointer into a map":    {within(asm.LoadMapValue(asm.R4, 0, 0).WithReference("table"), spill(asm.R4, 0, asm.R10, asm.DWord)), "is stored"},
		"a pointer to a function": {calls2(one(asm.Mov.Reg(asm.R1, asm.R10), asm.Call.Label("function"))), "given to a function"},
		"a buffer over the fuel": {join(one(asm.Mov.Reg(asm.R6, asm.R1)), initAt(-32), bufferAt(-56),
			chargeOf("loop", -32, 6, "out"), one(asm.Ja.Label("loop")), leave("out")), "could write over the fuel"},
		"a buffer over the fuel's last byte": {join(one(asm.Mov.Reg(asm.R6, asm.R1)), initAt(-64), bufferAt(-57),
			chargeOf("loop", -64, 6, "out"), one(asm.Ja.Label("loop")), leave("out")), "could write over the fuel"},

		"the fuel's address kept":          {within(asm.LoadMapValue(asm.R4, 0, 0).WithReference(FuelMap)), "another use"},
		"the fuel's map given to a helper": {within(asm.LoadMapPtr(asm.R1, 0).WithReference(FuelMap)), "another use"},
		"the zero's address written": {within(asm.LoadMapValue(asm.R4, 0, 8).WithReference(FuelMap), storeNumber(asm.R4, 0)),
			"another use"},
		"a jump to the fuel's value": {within(asm.JEq.Imm(asm.R1, 0, "value"), asm.LoadMapValue(asm.R4, 0, 8).WithReference(FuelMap),
			asm.LoadMem(asm.R4, asm.R4, 0, asm.DWord).WithSymbol("value")), "another use"},

		"a loop with a lock held": {before(asm.FnSpinLock.Call(), asm.Mov.Imm(asm.R6, 9), asm.Sub.Imm(asm.R6, 1).WithSymbol("again"),
			asm.JNE.Imm(asm.R6, 0, "again"), asm.FnSpinUnlock.Call()), "while a lock is held"},
		"a metered loop with a lock held": {join(initAt(testSlot), one(asm.FnSpinLock.Call()), chargeOf("loop", testSlot, 100, "out"),
			one(asm.Ja.Label("loop")), leave("out")), "while a lock is held"},
		"a function with a lock held": {calls2(one(asm.FnSpinLock.Call(), asm.Call.Label("function"), asm.FnSpinUnlock.Call())), "while a lock is held"},
		"a lock that costs what others do": {join(initAt(testSlot), chargeOf("loop", testSlot, 1000, "out"),
			one(asm.FnSpinLock.Call()), idle(100), one(asm.FnSpinUnlock.Call(), asm.Ja.Label("loop")), leave("out")), "more than it is charged"},

		"bpf_loop":    {join(one(asm.FnLoop.Call()), leave("out")), "may take any time"},
		"a tail call": {join(one(asm.FnTailCall.Call()), leave("out")), "may take any time"},
		"a callback": {join(one(asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference("out")),
			leave("out")), "callback"},
		"a kfunc":                      {join(one(asm.Instruction{OpCode: asm.Call.Op(asm.ImmSource), Src: asm.PseudoKfuncCall}), leave("out")), "neither a helper"},
		"an indirect call":             {join(one(asm.Instruction{OpCode: asm.OpCode(asm.JumpClass) | asm.OpCode(asm.Call) | asm.OpCode(asm.RegSource), Dst: asm.R1}), leave("out")), "neither a helper"},
		"a file descriptor":            {join(one(asm.LoadMapPtr(asm.R1, 3)), leave("out")), "outside of the lambda's maps"},
		"a relocation of the kernel's": {within(btf.WithCORERelocationMetadata(asm.Add.Imm(asm.R1, 1), &btf.CORERelocation{})), "CO-RE"},
		"a jump to nowhere":            {join(one(asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource), Offset: 9}), leave("out")), "to nowhere"},
		"a jump into an instruction": {join(one(asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource), Offset: 1}, asm.LoadImm(asm.R1, 1, asm.DWord)), leave("out")),
			"to nowhere"},
		"an end without exit": {join(one(asm.Mov.Imm(asm.R0, 0))), "leaves the function"},
		"a register too many": {join(one(asm.Mov.Imm(12, 0)), leave("out")), "unknown register"},

		"a walked loop of global loops": {join(
			one(asm.Mov.Imm(asm.R6, 100).WithSymbol("loop"), asm.Call.Label("function"), asm.Sub.Imm(asm.R6, 1), asm.JNE.Imm(asm.R6, 0, "loop")),
			leave("out"), global(labelled("function", one(asm.Sub.Imm(asm.R1, 1).WithSymbol("again"), asm.JNE.Imm(asm.R1, 0, "again")), leave("end")))),
			"the function takes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Check(collection(c.insns))
			if !errors.Is(err, ErrUnbounded) {
				t.Fatalf("accepted, or %v", err)
			}
			if !strings.Contains(err.Error(), c.why) {
				t.Errorf("refused for %v, want %q", err, c.why)
			}
		})
	}
}

func calls2(ins asm.Instructions) asm.Instructions {
	return join(initAt(testSlot), chargeOf("loop", testSlot, 1000, "out"), ins, one(asm.Ja.Label("loop")), leave("out"),
		labelled("function", leave("end")))
}

// intoCharge jumps over the subtraction, with some other number in the register.
func intoCharge() asm.Instructions {
	insns := within(asm.Mov.Imm(asm.R3, 1), asm.JEq.Imm(asm.R1, 0, "inside"))
	store := len(initAt(0)) + 2
	insns[store] = insns[store].WithSymbol("inside")
	return insns
}

func TestFuelsMapIsChecked(t *testing.T) {
	for name, change := range map[string]func(*ebpf.MapSpec){
		"smaller": func(m *ebpf.MapSpec) { m.ValueSize = 8 },
		"hash":    func(m *ebpf.MapSpec) { m.Type = ebpf.Hash },
		"pinned":  func(m *ebpf.MapSpec) { m.Pinning = ebpf.PinByName },
	} {
		t.Run(name, func(t *testing.T) {
			spec := collection(endless(9))
			change(spec.Maps[FuelMap])
			if _, err := Check(spec); !errors.Is(err, ErrUnbounded) {
				t.Errorf("accepted, or %v", err)
			}
			if err := Fill(spec, time.Millisecond); !errors.Is(err, ErrUnbounded) {
				t.Errorf("filled, or %v", err)
			}
		})
	}
}

// A nested loop, each loop with a tail of its own: the inner loop's charge differs from the outer loop's weight.
func nested(outer, inner int) asm.Instructions {
	return join(
		initAt(testSlot), one(asm.Mov.Imm(asm.R6, 0)),
		chargeOf("outer", testSlot, 1, "out"), idle(outer), one(asm.Mov.Imm(asm.R7, 0)),
		chargeOf("inner", testSlot, 1, "out"), idle(inner),
		one(asm.Add.Imm(asm.R7, 1), asm.JLT.Imm(asm.R7, 50, "inner"), asm.Add.Imm(asm.R6, 1), asm.JLT.Imm(asm.R6, 50, "outer")),
		leave("out"),
	)
}

func idle(n int) (insns asm.Instructions) {
	for range n {
		insns = append(insns, asm.Add.Imm(asm.R1, 1))
	}
	return insns
}

func TestPrice(t *testing.T) {
	p := collection(nested(300, 20))
	if _, err := Check(p); !errors.Is(err, ErrUnbounded) {
		t.Fatalf("accepted unpriced, or %v", err)
	}
	g, err := analyse(p, p.Programs["lambda"])
	if err != nil {
		t.Fatal(err)
	}
	if err := g.price(); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(p); err != nil {
		t.Errorf("priced, but %v", err)
	}
	var costs []uint64
	for _, c := range g.charges {
		costs = append(costs, c.cost)
	}
	// One iteration of the inner loop: charge, idle, two of its own. One of the outer loop also goes through the inner loop, which has paid
	// for itself only if it took its back edge.
	if want := fmt.Sprint([]uint64{7 + 300 + 1 + 2, 7 + 20 + 2}); fmt.Sprint(costs) != want {
		t.Errorf("costs %v, want %v", costs, want)
	}
}

// loopsOf makes n loops, nested or consecutive.
func loopsOf(n int, nest bool) asm.Instructions {
	parts := []asm.Instructions{initAt(testSlot)}
	var ends []asm.Instructions
	for i := range n {
		label := fmt.Sprintf("loop%d", i)
		parts = append(parts, chargeOf(label, testSlot, 1, label+"out"))
		end := one(asm.JEq.Imm(asm.R1, int32(i), label), asm.Add.Imm(asm.R1, 1).WithSymbol(label+"out"))
		if nest {
			ends = append([]asm.Instructions{end}, ends...)
		} else {
			parts = append(parts, end)
		}
	}
	return join(append(append(parts, ends...), leave("out"))...)
}

func TestPriceOfManyLoops(t *testing.T) {
	for name, c := range map[string]struct {
		loops int
		nest  bool
		why   string
	}{
		"one behind the other": {5000, false, ""},
		"in each other":        {60, true, ""},
		"too deep":             {70, true, "deep in each other"},
	} {
		t.Run(name, func(t *testing.T) {
			p := collection(loopsOf(c.loops, c.nest))
			g, err := analyse(p, p.Programs["lambda"])
			if err != nil {
				t.Fatal(err)
			}
			err = g.price()
			if c.why != "" {
				if !errors.Is(err, ErrUnbounded) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("priced, or %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := Check(p); err != nil {
				t.Error(err)
			}
		})
	}
}

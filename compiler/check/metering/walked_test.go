package metering

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/test/seed"
)

// times is a loop that the verifier walks. It weighs its body plus one for each of two instructions.
func times(label string, counter asm.Register, n int32, body asm.Instructions) asm.Instructions {
	return slices.Concat(one(asm.Mov.Imm(counter, 0), asm.Add.Imm(counter, 1).WithSymbol(label)), body, one(asm.JLT.Imm(counter, n, label)))
}

func TestPace(t *testing.T) {
	divisions := func(n int) asm.Instructions { return slices.Repeat(one(asm.Div.Imm(asm.R1, 3)), n) }
	for name, c := range map[string]struct {
		insns asm.Instructions
		pace  uint64
	}{
		"no loop":                 {join(divisions(3), leave("out")), 0},
		"a loop":                  {join(times("a", asm.R6, 9, idle(3)), leave("out")), 1},
		"a division in it":        {join(times("a", asm.R6, 9, divisions(1)), leave("out")), 9}, // 1 + 24 + 1, in 3
		"one beside it":           {join(times("a", asm.R6, 9, nil), divisions(1), leave("out")), 1},
		"two loops":               {join(times("a", asm.R6, 9, divisions(1)), times("b", asm.R6, 9, divisions(2)), leave("out")), 13}, // 50 in 4
		"a loop in a loop":        {join(times("a", asm.R6, 9, times("b", asm.R7, 9, divisions(2))), leave("out")), 13},
		"a light one in it":       {join(times("a", asm.R6, 9, slices.Concat(divisions(4), times("b", asm.R7, 9, nil))), leave("out")), 12}, // 101 in 9
		"in a function":           {join(one(asm.Call.Label("f")), leave("out"), labelled("f", times("a", asm.R6, 9, divisions(1)), leave("end"))), 9},
		"a function's":            {join(times("a", asm.R6, 9, one(asm.Call.Label("f"))), leave("out"), labelled("f", divisions(2), leave("end"))), 20}, // 7 + 51 in 3
		"a function's loop":       {join(times("a", asm.R6, 9, one(asm.Call.Label("f"))), leave("out"), labelled("f", times("b", asm.R7, 9, divisions(2)), leave("end"))), 21},
		"two paths, one heavier":  {join(times("a", asm.R6, 9, slices.Concat(one(asm.JEq.Imm(asm.R1, 3, "skip")), divisions(1), one(asm.Add.Imm(asm.R1, 1).WithSymbol("skip")))), leave("out")), 6}, // 28 in 5
		"a loop of two entrances": {join(one(asm.JEq.Imm(asm.R1, 3, "b"), asm.Div.Imm(asm.R1, 3).WithSymbol("a"), asm.Add.Imm(asm.R6, 1).WithSymbol("b"), asm.JLT.Imm(asm.R6, 9, "a")), leave("out")), 9},
	} {
		t.Run(name, func(t *testing.T) {
			bounds, err := Check(collection(c.insns))
			if err != nil {
				t.Fatal(err)
			}
			if b := bounds["lambda"]; b.Pace != c.pace || b.Metered {
				t.Errorf("got %+v, want a pace of %d", b, c.pace)
			}
		})
	}
}

func TestCheckWalked(t *testing.T) {
	const walked = 100_000
	pace := func(d time.Duration) uint64 { return uint64(d.Nanoseconds()) * unitsPerNs / walked }
	for name, c := range map[string]struct {
		bound Bound
		limit time.Duration
		ok    bool
	}{
		"little":                     {Bound{Pace: pace(time.Millisecond)}, time.Microsecond, true},
		"as much as may be":          {Bound{Pace: pace(Coarse)}, time.Microsecond, true},
		"more":                       {Bound{Pace: pace(Coarse) + 1}, time.Microsecond, false},
		"more, besides loops":        {Bound{Pace: pace(Coarse), Debt: unitsPerNs}, time.Microsecond, false},
		"more, but the limit":        {Bound{Pace: pace(2 * Coarse)}, 2 * Coarse, true},
		"more than the limit":        {Bound{Pace: pace(2*Coarse) + 1}, 2 * Coarse, false},
		"endless":                    {Bound{Pace: 1 << 62, Debt: 1 << 62}, time.Second, false},
		"no loop, which is no limit": {Bound{Debt: uint64(2*Coarse) * unitsPerNs}, time.Microsecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.bound.CheckWalked(walked, c.limit)
			if c.ok && err != nil || !c.ok && (!errors.Is(err, ErrUnbounded) || !strings.Contains(err.Error(), "limits.time")) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// No path through a program that the verifier walks to its end weighs more than the bound allows for its instructions, and it has no
// more instructions than were walked.
func TestWalkedProgramsStayWithinBounds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	random := seed.Rand(t)
	for round := range 300 {
		spec := walkedProgram(random)
		walked := verified(t, spec)
		for range 5 {
			b, took, steps := runWalked(t, spec, random.Int64)
			if most := b.Debt + b.Pace*steps; took > most || steps > uint64(walked) {
				t.Fatalf("round %d: a run of %d instructions takes %d, at most %d are promised, and %d instructions were walked\n%v",
					round, steps, took, most, walked, spec.Programs["lambda"].Instructions)
			}
		}
	}
}

// Bounds are tight enough to show an error: a run of each kind of loop takes more than a lower pace would allow. Only functions that a
// loop calls have instructions that its pace does not count on.
func TestPaceIsNeeded(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loads BPF programs: needs root")
	}
	divisions := func(n int) asm.Instructions {
		return slices.Repeat(one(asm.Mov.Imm(asm.R1, 7), asm.Div.Imm(asm.R1, 3)), n)
	}
	store := one(asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R10, -8, asm.R1, asm.DWord))
	unless := slices.Concat(one(asm.FnGetPrandomU32.Call(), asm.JSet.Imm(asm.R0, 1, "skip")), divisions(1), one(asm.Mov.Imm(asm.R1, 0).WithSymbol("skip")))
	call := one(asm.Call.Label("f"))
	for name, c := range map[string]struct {
		insns       asm.Instructions
		pace, least uint64
	}{
		"stores":            {join(times("a", asm.R6, 1000, store), leave("out")), 2, 2},        // 5 in 4
		"divisions":         {join(times("a", asm.R6, 1000, divisions(2)), leave("out")), 9, 9}, // 52 in 6
		"a loop in a loop":  {join(times("a", asm.R6, 9, times("b", asm.R7, 999, divisions(2))), leave("out")), 9, 9},
		"what may be":       {join(times("a", asm.R6, 1000, unless), leave("out")), 20, 20},
		"a function's loop": {join(call, leave("out"), labelled("f", times("a", asm.R6, 1000, divisions(2)), leave("end"))), 9, 9},
		"a function":        {join(times("a", asm.R6, 1000, call), leave("out"), labelled("f", divisions(2), leave("end"))), 20, 6},
	} {
		t.Run(name, func(t *testing.T) {
			spec := collection(c.insns)
			b, took, steps := runWalked(t, spec, func() int64 { return 1 })
			if walked := verified(t, spec); steps > uint64(walked) {
				t.Errorf("a run has %d instructions, and %d were walked", steps, walked)
			}
			least := (took - b.Debt + steps - 1) / steps
			if b.Pace != c.pace || least != c.least {
				t.Errorf("the pace is %d, where %d would do, want %d and %d", b.Pace, least, c.pace, c.least)
			}
		})
	}
}

// runWalked runs a program whose helpers return answer's results. It returns the bound, the run's weight and its number of instructions.
func runWalked(t *testing.T, spec *ebpf.CollectionSpec, answer func() int64) (b Bound, took, steps uint64) {
	t.Helper()
	g, err := analyse(spec, spec.Programs["lambda"])
	if err != nil {
		t.Fatal(err)
	}
	bounds, err := Check(spec)
	if err != nil {
		t.Fatal(err)
	}
	took, steps = interpret(g, answer)
	return bounds["lambda"], took, steps
}

func verified(t *testing.T, spec *ebpf.CollectionSpec) uint32 {
	t.Helper()
	c, err := ebpf.NewCollection(spec.Copy())
	if err != nil {
		t.Fatalf("%+v", err)
	}
	defer c.Close()
	info, err := c.Programs["lambda"].Info()
	if err != nil {
		t.Fatal(err)
	}
	n, ok := info.VerifiedInstructions()
	if !ok {
		t.Fatal("the kernel does not tell how many instructions it verified")
	}
	return n
}

// walkedProgram has nested and consecutive loops of known length, with branches on unknown values in them, and a function.
func walkedProgram(random *rand.Rand) *ebpf.CollectionSpec {
	count := 0
	var block func(depth int, counters []asm.Register) asm.Instructions
	block = func(depth int, counters []asm.Register) (insns asm.Instructions) {
		for range 1 + random.IntN(3) {
			count++
			label := fmt.Sprintf("l%d", count)
			switch kind := random.IntN(6); {
			case kind < 2 && depth < 2:
				insns = append(insns, times(label, counters[depth], int32(1+random.IntN(12)), block(depth+1, counters))...)
			case kind == 2 && depth > 0:
				part := block(2, counters)
				insns = append(insns, asm.FnGetPrandomU32.Call(), asm.JSet.Imm(asm.R0, 1, label))
				insns = append(append(insns, part...), asm.Mov.Imm(asm.R1, 0).WithSymbol(label))
			case kind == 3:
				insns = append(insns, asm.Mov.Imm(asm.R1, 7), asm.Div.Imm(asm.R1, 3))
			case kind == 4:
				insns = append(insns, asm.Call.Label("function"))
			default:
				insns = append(insns, asm.Mov.Imm(asm.R1, 1), asm.StoreMem(asm.R10, -8, asm.R1, asm.DWord))
			}
		}
		return insns
	}
	body := block(0, []asm.Register{asm.R6, asm.R7})
	if !slices.ContainsFunc(body, func(ins asm.Instruction) bool { return ins.IsFunctionCall() }) {
		body = append(body, asm.Call.Label("function"))
	}
	inner := times("inner", asm.R8, int32(1+random.IntN(5)), one(asm.FnGetSmpProcessorId.Call()))
	return collection(join(body, leave("out"), labelled("function", inner, leave("end"))))
}

// interpret runs a program of the instructions that walkedProgram uses.
func interpret(g *graph, answer func() int64) (took, steps uint64) {
	var reg [registers]int64
	var back []int
	for i := 0; ; {
		steps++
		ins := &g.Insns[i]
		next := i + 1
		switch op := ins.OpCode; {
		case ins.IsFunctionCall():
			took += weightCall
			back, next = append(back, next), g.Target[i]
		case op.JumpOp() == asm.Exit:
			took++
			if len(back) == 0 {
				return took, steps
			}
			next, back = back[len(back)-1], back[:len(back)-1]
		default:
			took += g.weight[i]
			switch {
			case ins.IsBuiltinCall():
				reg[asm.R0] = answer()
			case op.ALUOp() == asm.Mov:
				reg[ins.Dst] = ins.Constant
			case op.ALUOp() == asm.Add:
				reg[ins.Dst] += ins.Constant
			case op.JumpOp() == asm.JLT && reg[ins.Dst] < ins.Constant, op.JumpOp() == asm.JSet && reg[ins.Dst]&ins.Constant != 0:
				next = g.Target[i]
			}
		}
		i = next
	}
}

package metering

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/test/seed"
)

// counted is a metered while (1) that counts its iterations in a map.
func counted(cost int32) *ebpf.CollectionSpec {
	spec := collection(join(
		initAt(testSlot),
		one(asm.LoadMapValue(asm.R6, 0, 0).WithReference("count")),
		chargeOf("loop", testSlot, cost, "out"),
		one(
			asm.LoadMem(asm.R1, asm.R6, 0, asm.DWord),
			asm.Add.Imm(asm.R1, 1),
			asm.StoreMem(asm.R6, 0, asm.R1, asm.DWord),
			asm.Ja.Label("loop"),
		),
		leave("out"),
	))
	spec.Maps["count"] = &ebpf.MapSpec{Name: "count", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}
	return spec
}

// run loads what Check accepts, runs it once, and returns what it answered.
func run(t *testing.T, spec *ebpf.CollectionSpec, budget time.Duration) (uint32, *ebpf.Collection) {
	t.Helper()
	if _, err := Check(spec); err != nil {
		t.Fatal(err)
	}
	if err := Fill(spec, budget); err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(c.Close)
	verdict, err := c.Programs["lambda"].Run(&ebpf.RunOptions{Data: make([]byte, 64)})
	if err != nil {
		t.Fatal(err)
	}
	return verdict, c
}

func TestEndlessLoopEnds(t *testing.T) {
	const cost = 13
	for _, budget := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond} {
		t.Run(budget.String(), func(t *testing.T) {
			verdict, c := run(t, counted(cost), budget)
			var iterations uint64
			if err := c.Maps["count"].Lookup(uint32(0), &iterations); err != nil {
				t.Fatal(err)
			}
			want := uint64(budget.Microseconds()) * PerMicrosecond / cost
			if verdict != 2 || iterations != want {
				t.Errorf("answered %d after %d iterations, want 2 after %d", verdict, iterations, want)
			}
		})
	}
}

// What Price makes of loops in loops loads, and runs to its end where the budget allows.
func TestPricedLoopsRun(t *testing.T) {
	spec := collection(nested(30, 5))
	g, err := analyse(spec, spec.Programs["lambda"])
	if err != nil {
		t.Fatal(err)
	}
	if err := g.price(); err != nil {
		t.Fatal(err)
	}
	if verdict, _ := run(t, spec, time.Millisecond); verdict != 2 {
		t.Errorf("answered %d", verdict)
	}
}

// Programs of random control flow, whose jumps go anywhere: whatever is accepted, priced or not, a run never weighs more than its budget
// plus its debt.
func TestRunsStayWithinBounds(t *testing.T) {
	random := seed.Rand(t)
	for round := range 3000 {
		spec := collection(randomProgram(random))
		g, err := analyse(spec, spec.Programs["lambda"])
		if err != nil {
			continue
		}
		if round%4 > 0 {
			if err := g.price(); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		bounds, err := Check(spec)
		if err != nil {
			if round%4 > 0 {
				t.Fatalf("round %d: priced, but %v", round, err)
			}
			continue
		}
		for range 20 {
			const budget = 5000
			if took, most := simulate(g, random.IntN, budget), budget+bounds["lambda"].Debt; took > most {
				t.Fatalf("round %d: a run takes %d, at most %d are promised\n%v", round, took, most, spec.Programs["lambda"].Instructions)
			}
		}
	}
}

// Programs of each shape that random ones have are accepted, and their bounds are tight enough to show an error: a run of a loop that is
// charged exactly what it weighs takes more than its budget. A loop that is charged less is refused.
func TestBoundsAreNeeded(t *testing.T) {
	const budget = 5000
	block := func(name string, cost int32, then asm.Instruction) asm.Instructions {
		return append(append(chargeOf(name, testSlot, cost, "out"), idle(3)...), then)
	}
	for name, c := range map[string]struct {
		insns          asm.Instructions
		priced         bool
		took, promised uint64
	}{
		"no loop":              {join(idle(3), leave("out")), false, 5, 5},
		"a loop":               {join(initAt(testSlot), block("a", 11, asm.Ja.Label("a")), leave("out")), false, 5007, 5014},
		"a loop, priced":       {join(initAt(testSlot), block("a", 1, asm.Ja.Label("a")), leave("out")), true, 5007, 5014},
		"two blocks":           {join(initAt(testSlot), block("a", 11, asm.Ja.Label("b")), block("b", 11, asm.Ja.Label("a")), leave("out")), false, 5007, 5014},
		"two blocks, one pays": {join(initAt(testSlot), block("a", 13, asm.Ja.Label("b")), one(asm.Add.Imm(asm.R1, 1).WithSymbol("b"), asm.Ja.Label("a")), leave("out")), false, 5005, 5014},
		"a loop that owes":     {join(initAt(testSlot), block("a", 10, asm.Ja.Label("a")), leave("out")), false, 0, 0},
		"two blocks that owe":  {join(initAt(testSlot), block("a", 11, asm.Ja.Label("b")), block("b", 10, asm.Ja.Label("a")), leave("out")), false, 0, 0},
		"back on a condition":  {join(initAt(testSlot), block("a", 1, asm.JEq.Imm(asm.R1, 0, "a")), block("b", 1, asm.JEq.Imm(asm.R1, 0, "a")), leave("out")), true, 2510, 5014},
	} {
		t.Run(name, func(t *testing.T) {
			spec := collection(c.insns)
			g, err := analyse(spec, spec.Programs["lambda"])
			if err != nil {
				t.Fatal(err)
			}
			if c.priced {
				if err := g.price(); err != nil {
					t.Fatal(err)
				}
			}
			bounds, err := Check(spec)
			if c.promised == 0 && errors.Is(err, ErrUnbounded) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			promised := bounds["lambda"].Debt
			if bounds["lambda"].Metered {
				promised += budget
			}
			took := simulate(g, func(n int) int { return n - 1 }, budget) // it jumps where it may
			if took != c.took || promised != c.promised {
				t.Errorf("a run takes %d, at most %d are promised, want %d of %d", took, promised, c.took, c.promised)
			}
		})
	}
}

func randomProgram(random *rand.Rand) asm.Instructions {
	blocks := 2 + random.IntN(8)
	label := func() string { return fmt.Sprintf("b%d", random.IntN(blocks)) }
	parts := []asm.Instructions{initAt(testSlot)}
	for b := range blocks {
		name := fmt.Sprintf("b%d", b)
		if random.IntN(2) == 0 {
			parts = append(parts, chargeOf(name, testSlot, int32(1+random.IntN(60)), label()))
		} else {
			parts = append(parts, one(asm.Add.Imm(asm.R1, 1).WithSymbol(name)))
		}
		parts = append(parts, idle(random.IntN(6)))
		switch random.IntN(5) {
		case 0:
			parts = append(parts, one(asm.Ja.Label(label())))
		case 1, 2:
			parts = append(parts, one(asm.JEq.Imm(asm.R1, 0, label())))
		case 3:
			parts = append(parts, leave(name+"exit"))
		}
	}
	return join(append(parts, leave("out"))...)
}

// simulate runs a program and returns what the run weighed. Branches that do not depend on the fuel go where choose says.
func simulate(g *graph, choose func(n int) int, fuel int64) (took uint64) {
	for i := 0; ; {
		took += g.weight[i]
		next := g.Successors(i)
		switch {
		case len(next) == 0:
			return took
		case i > 0 && g.Insns[i].OpCode == ifSpent && i+1 < len(g.within) && g.within[i+1] >= 0:
			if fuel -= int64(g.charges[g.within[i+1]].cost); fuel < 0 {
				i = next[1]
			} else {
				i = next[0]
			}
		case g.within[i] >= 0 && choose(50) > 0:
			i = next[0]
		default:
			i = next[choose(len(next))]
		}
	}
}

package flow

import (
	"errors"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// program has a wide instruction, a loop, and a call of a global function.
func program() asm.Instructions {
	return asm.Instructions{
		asm.LoadImm(asm.R1, 1<<40, asm.DWord),
		asm.Mov.Imm(asm.R6, 3),
		asm.Sub.Imm(asm.R6, 1).WithSymbol("loop"),
		asm.Call.Label("function"),
		asm.JNE.Imm(asm.R6, 0, "loop"),
		asm.Return(),
		btf.WithFuncMetadata(asm.Mov.Imm(asm.R0, 0).WithSymbol("function"), &btf.Func{Name: "function", Linkage: btf.GlobalFunc}),
		asm.Return(),
	}
}

func TestGraph(t *testing.T) {
	g, err := New(program())
	if err != nil {
		t.Fatal(err)
	}
	if want := []Func{{0, 6, false}, {6, 8, true}}; !slices.Equal(g.Funcs, want) {
		t.Errorf("functions %v, want %v", g.Funcs, want)
	}
	if g.Callee(3) != 1 || !g.Jumped[2] || g.Jumped[6] {
		t.Errorf("callee %d, jumped %v", g.Callee(3), g.Jumped)
	}
	for i, want := range [][]int{{1}, {2}, {3}, {4}, {5, 2}, nil, {7}, nil} {
		if got := g.Successors(i); !slices.Equal(got, want) {
			t.Errorf("%d leads to %v, want %v", i, got, want)
		}
	}
}

func TestGraphRefuses(t *testing.T) {
	jump := func(distance int16) asm.Instruction {
		return asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource), Offset: distance}
	}
	for name, c := range map[string]struct {
		insns asm.Instructions
		at    int
	}{
		"nothing":                    {nil, 0},
		"a jump far away":            {asm.Instructions{asm.Mov.Imm(asm.R0, 0), jump(100), asm.Return()}, 1},
		"a jump before the program":  {asm.Instructions{asm.Mov.Imm(asm.R0, 0), jump(-3), asm.Return()}, 1},
		"a jump within a wide one":   {asm.Instructions{jump(1), asm.LoadImm(asm.R1, 1, asm.DWord), asm.Return()}, 0},
		"a label that is not there":  {asm.Instructions{asm.Ja.Label("nowhere"), asm.Return()}, 0},
		"a register too many":        {asm.Instructions{asm.Mov.Imm(asm.R10+1, 0), asm.Return()}, 0},
		"a register too many, read":  {asm.Instructions{asm.Mov.Reg(asm.R0, asm.R10+1), asm.Return()}, 0},
		"a load among the stores":    {asm.Instructions{object(asm.LoadAcquire(asm.R0, asm.R1, asm.DWord, 0), 0x100), asm.Return()}, 0},
		"an operation of the future": {asm.Instructions{object(asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0), 0x200), asm.Return()}, 0},
		"a jump by a register":       {asm.Instructions{{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Ja).SetSource(asm.RegSource)}, asm.Return()}, 0},
		"an end without exit":        {asm.Instructions{asm.Return(), asm.Mov.Imm(asm.R0, 0)}, 1},
		"a jump to another function": {append(program(), asm.Ja.Label("loop")), 8},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.insns)
			var e *Error
			if !errors.As(err, &e) || e.At != c.at {
				t.Errorf("got %v, want an error at %d", err, c.at)
			}
		})
	}
}

// object is an atomic operation as it is in an object file, with the operation in the constant as well.
func object(ins asm.Instruction, operation int64) asm.Instruction {
	ins.Constant = operation
	return ins
}

// Track joins what enters a loop with what comes along its back edge, and leaves out unreachable instructions.
func TestTrack(t *testing.T) {
	insns := program()
	insns = slices.Insert(insns, 6, asm.Mov.Imm(asm.R0, 1), asm.Return()) // after the exit, before the function
	g, err := New(insns)
	if err != nil {
		t.Fatal(err)
	}
	const most = 9
	steps := Track(g, func(int) int { return 0 }, func(_ int, n int) int { return min(n+1, most) }, func(a, b int) int { return max(a, b) })
	if steps[0] == nil || *steps[0] != 0 || *steps[1] != 1 || *steps[2] != most || *steps[5] != most {
		t.Errorf("tracked %v", steps)
	}
	if steps[6] != nil || steps[8] == nil || *steps[8] != 0 {
		t.Errorf("unreachable %v, the function's beginning %v", steps[6], steps[8])
	}
}

// A frame reaches as far as a store, a load or an address goes; frames of functions that call each other add up.
func TestDeepest(t *testing.T) {
	g, err := New(asm.Instructions{
		asm.StoreMem(asm.R10, -40, asm.R1, asm.DWord),
		asm.Call.Label("one"),
		asm.Call.Label("two"),
		asm.Return(),
		asm.LoadMem(asm.R0, asm.R10, -8, asm.Word).WithSymbol("one"),
		asm.Return(),
		asm.Mov.Reg(asm.R2, asm.R10).WithSymbol("two"),
		asm.Add.Imm(asm.R2, -100),
		asm.Call.Label("one"),
		asm.Call.Label("two"),
		asm.Return(),
	})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range []int{40, 8, 100} {
		if got := g.Frame(k); got != want {
			t.Errorf("frame %d has %d bytes, want %d", k, got, want)
		}
	}
	if got := g.Deepest(0, g.Frame); got != 148 {
		t.Errorf("%d bytes at once, want 148", got)
	}
}

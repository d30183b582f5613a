package pointers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
)

// chain is a chain of functions, each placed after the one that it calls.
func chain(n int) asm.Instructions {
	p := asm.Instructions{asm.Call.Label(fmt.Sprintf("f%d", n-1)), asm.Mov.Imm(asm.R0, 2), asm.Return(), asm.Mov.Imm(asm.R0, 1).WithSymbol("f0"), asm.Return()}
	for k := range n - 1 {
		p = append(p, asm.Call.Label(fmt.Sprintf("f%d", k)).WithSymbol(fmt.Sprintf("f%d", k+1)), asm.Return())
	}
	return p
}

// backwards are basic blocks that run from the last to the first.
func backwards(n int) asm.Instructions {
	p := asm.Instructions{asm.Ja.Label(fmt.Sprintf("b%d", n-1)), asm.Mov.Imm(asm.R0, 1).WithSymbol("b0"), asm.Return()}
	for k := range n - 1 {
		p = append(p, asm.Mov.Imm(asm.R0, 1).WithSymbol(fmt.Sprintf("b%d", k+1)), asm.Ja.Label(fmt.Sprintf("b%d", k)))
	}
	return p
}

// shifted is a loop of n instructions. With each iteration one more slot may hold what the previous slot held.
func shifted(n int) asm.Instructions {
	var p asm.Instructions
	for at := int16(-512); at < 0; at += 8 {
		p = append(p, asm.Mov.Imm(asm.R2, 1), spill(at, asm.R2))
	}
	p = append(p, spill(-8, asm.R1), asm.Mov.Imm(asm.R3, 0).WithSymbol("loop"))
	for at := int16(-512); at < -8; at += 8 {
		p = append(p, fill(asm.R2, at+8), spill(at, asm.R2))
	}
	p = append(p, slices.Repeat(asm.Instructions{asm.Add.Imm(asm.R3, 1)}, n)...)
	return append(p, asm.JNE.Imm(asm.R3, 7, "loop"), asm.Mov.Imm(asm.R0, 2), asm.Return())
}

// However a program is laid out, it is followed in a few steps per instruction.
func TestStepsAreFew(t *testing.T) {
	for name, p := range map[string]asm.Instructions{"chain": chain(8000), "backwards": backwards(32000)} {
		t.Run(name, func(t *testing.T) {
			g, err := flow.New(p)
			if err != nil {
				t.Fatal(err)
			}
			c := newChecker(g, nil)
			c.run()
			if c.steps > 6*len(p) {
				t.Errorf("%d steps for %d instructions", c.steps, len(p))
			}
			if err := verdict(p); err != nil {
				t.Error(err)
			}
		})
	}
}

// What takes longer is refused after maxSteps.
func TestTooManyStepsAreRefused(t *testing.T) {
	if err := verdict(shifted(100)); err != nil {
		t.Error(err)
	}
	err := verdict(shifted(100_000))
	if err == nil || errors.Is(err, ErrLeak) || !strings.Contains(err.Error(), "make it smaller") {
		t.Errorf("got %v", err)
	}
}

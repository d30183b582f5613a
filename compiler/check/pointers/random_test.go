package pointers

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/test/seed"
)

const rounds = 3000

// A speaker writes random programs that could carry an address from one place to another. The verifier accepts about half of them.
type speaker struct{ *rand.Rand }

func (r speaker) reg() asm.Register {
	return []asm.Register{asm.R1, asm.R2, asm.R3, asm.R7, asm.R8}[r.IntN(5)]
}
func (r speaker) slot() int16 { return int16(-16 - 8*r.IntN(3)) }

// piece is one random operation of a program. r6 stays the context, r9 the element's address.
func (r speaker) piece() asm.Instructions {
	one := func(ins ...asm.Instruction) asm.Instructions { return ins }
	number := []asm.Instruction{asm.Mov.Imm(r.reg(), int32(r.IntN(9))), asm.LoadMem(r.reg(), asm.R9, int16(8*r.IntN(8)), asm.DWord)}[r.IntN(2)]
	pointer := []asm.Instruction{
		asm.Mov.Reg(r.reg(), asm.R9), asm.Mov.Reg(r.reg(), asm.R6), asm.LoadMem(r.reg(), asm.R6, int16(4*r.IntN(4)), asm.Word),
	}[r.IntN(3)]
	switch r.IntN(16) {
	case 0, 1:
		return one(number)
	case 2, 3:
		return one(pointer)
	case 4:
		return one(asm.Mov.Reg(r.reg(), r.reg()))
	case 5:
		return one(asm.Add.Reg(r.reg(), r.reg()))
	case 6:
		return one(asm.Add.Imm(r.reg(), int32(8*r.IntN(3)-8)))
	case 7:
		return one([]asm.Instruction{asm.Sub.Reg(r.reg(), r.reg()), asm.Sub.Reg32(r.reg(), r.reg()), asm.Mov.Reg32(r.reg(), r.reg())}[r.IntN(3)])
	case 8, 9:
		return one(spill(r.slot(), r.reg()))
	case 10, 11:
		return one(fill(r.reg(), r.slot()))
	case 12:
		return one(asm.StoreImm(asm.RFP, r.slot()+int16(r.IntN(8)), 1, asm.Byte))
	case 13:
		return one(asm.LoadMem(r.reg(), asm.RFP, r.slot()+4, asm.Word))
	case 14:
		return append(shrink, asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 0))
	default:
		return append(loadBytes(int32(r.IntN(2)*30000), int32(r.slot()), 8), asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 0))
	}
}

// program is a sequence of pieces, some of them jumped over, that ends by storing a register.
func (r speaker) program() asm.Instructions {
	pieces := []any{asm.Mov.Imm(asm.R1, 0), asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 0)}
	for range 1 + r.IntN(4) {
		pieces = append(pieces, r.piece())
	}
	if branch := r.piece(); r.IntN(2) == 0 {
		pieces = append(pieces, never(branch...))
	} else {
		op := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JSLE}[r.IntN(4)]
		test := []asm.Instruction{op.Reg(r.reg(), r.reg(), "meet"), op.Imm(r.reg(), 0, "meet")}[r.IntN(2)]
		pieces = append(pieces, append(asm.Instructions{test}, branch...))
	}
	for range r.IntN(3) {
		pieces = append(pieces, r.piece())
	}
	return paths(append(pieces, asm.StoreMem(asm.R9, 0, r.reg(), asm.DWord))...)
}

// A program that passes the check, and that the verifier accepts, does the same wherever the kernel has put its memory. So it leaves the
// same traces in two worlds, while some programs that do not pass leave different ones.
func TestRandomProgramsTellNothing(t *testing.T) {
	w := worlds(t)
	r := speaker{seed.Rand(t)}
	passed, told := 0, 0
	for round := range rounds {
		p := r.program()
		same, ok := w.same(t, p)
		if !ok {
			continue
		}
		switch err := verdict(p); {
		case err == nil && !same:
			t.Fatalf("round %d: a program passes that tells an address\n%v", round, p)
		case err == nil:
			passed++
		case !errors.Is(err, ErrLeak):
			t.Fatalf("round %d: %v\n%v", round, err, p)
		case !same:
			told++
		}
	}
	if passed == 0 || told == 0 {
		t.Errorf("%d programs passed, %d were refused and do tell an address: the test says nothing", passed, told)
	}
	t.Logf("%d programs passed, %d were refused and do tell an address", passed, told)
}

// Whatever address a program leaks, and by whatever piece, the two worlds show it.
func TestWorldsDiffer(t *testing.T) {
	w := worlds(t)
	told := func(ins ...asm.Instruction) asm.Instructions {
		return paths(append(asm.Instructions(ins), asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord)))
	}
	for name, p := range map[string]asm.Instructions{
		"the packet":               told(asm.Mov.Reg(asm.R1, asm.R7)),
		"the packet's end":         told(asm.Mov.Reg(asm.R1, asm.R8)),
		"the packet, loaded":       told(asm.LoadMem(asm.R1, asm.R6, 0, asm.Word)),
		"the context":              told(asm.Mov.Reg(asm.R1, asm.R6)),
		"the stack":                told(asm.Mov.Reg(asm.R1, asm.RFP)),
		"the element":              told(asm.Mov.Reg(asm.R1, asm.R9)),
		"spilled and filled":       told(spill(-16, asm.R7), fill(asm.R1, -16)),
		"half of one written over": told(spill(-16, asm.R7), asm.StoreImm(asm.RFP, -9, 1, asm.Byte), asm.LoadMem(asm.R1, asm.RFP, -16, asm.Word)),
		"half of a register":       told(asm.Mov.Reg32(asm.R1, asm.R7)),
		"the distance of two":      told(asm.Mov.Reg(asm.R1, asm.R9), asm.Sub.Reg(asm.R1, asm.R7)),
		"a place past another":     told(asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, 8)),
		"written where one lies":   told(spill(-16, asm.R7), asm.StoreImm(asm.RFP, -16, 1, asm.Byte), fill(asm.R1, -16)),
		"after the packet shrank":  told(slices.Concat(shrink, asm.Instructions{asm.LoadMem(asm.R1, asm.R6, 4, asm.Word)})...),
	} {
		t.Run(name, func(t *testing.T) {
			if same, ok := w.same(t, p); !ok || same {
				t.Errorf("the verifier takes it: %v, the same traces: %v", ok, same)
			}
			if err := verdict(p); !errors.Is(err, ErrLeak) {
				t.Errorf("the check says %v", err)
			}
		})
	}
	if same, ok := w.same(t, paths(chosen(asm.R1), asm.StoreMem(asm.R9, 0, asm.R1, asm.DWord))); !ok || !same {
		t.Errorf("a program that tells nothing: taken %v, the same traces %v", ok, same)
	}
}

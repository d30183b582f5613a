package compiler

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/check/metering"
)

const instruction = 8 // bytes

// findCharges finds the charges that the passes put into loops: load, add, store, and two jumps if the fuel is spent (package metering).
func findCharges(object []byte) (at []int) {
	for i := 0; i+5*instruction <= len(object); i += 4 {
		ops := []byte{object[i], object[i+8], object[i+16], object[i+24], object[i+32]}
		if bytes.Equal(ops, []byte{0x79, 0x07, 0x7b, 0xc5, 0xe5}) {
			at = append(at, i)
		}
	}
	return at
}

// Artifacts are checked even if they were compiled here: each change lets a loop run longer.
func TestInspectRefusesTamperedLoops(t *testing.T) {
	a, err := Build(t.Context(), "corpus/insertion_sort", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(a.BPF); err != nil {
		t.Fatal(err)
	}
	found := findCharges(a.BPF)
	if len(found) == 0 {
		t.Fatal("the object has no charges")
	}
	none := []byte{0x05, 0, 0, 0, 0, 0, 0, 0} // goto +0
	for name, change := range map[string]func(charge []byte){
		"a lower cost":        func(c []byte) { binary.LittleEndian.PutUint32(c[instruction+4:], ^uint32(0)) },
		"fuel that grows":     func(c []byte) { binary.LittleEndian.PutUint32(c[instruction+4:], 1000) },
		"fuel that is kept":   func(c []byte) { copy(c[2*instruction:], none) },
		"nothing that checks": func(c []byte) { copy(c[3*instruction:], none) },
		"the kernel's alone":  func(c []byte) { copy(c, bytes.Repeat(none, 4)) },
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range found {
				object := bytes.Clone(a.BPF)
				change(object[at : at+5*instruction])
				if _, err := Inspect(object); !errors.Is(err, ErrForbidden) && !errors.Is(err, metering.ErrUnbounded) {
					t.Errorf("accepted, or %v", err)
				}
			}
		})
	}
}

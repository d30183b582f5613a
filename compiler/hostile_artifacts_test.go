package compiler_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/test/seed"
)

// A victim is an artifact to tamper with: it has metered loops, guards, a global variable, and a heap.
const victim = `/* contained */
#include "hostile.h"
#include <stdlib.h>

static volatile uint32_t table[64];
LAMBDA_KEPT uint64_t rounds;

static void attack(EXTRACTED_HEADERS_T *request, uint32_t k)
{
	uint8_t *p = malloc(32);

	for (uint32_t i = 0; p && i < 1000 * k; i++) {
		p[i & 31] = (uint8_t)table[(i * k) & 63];
		table[p[i & 31] & 63] += i;
		rounds++;
	}
	sink = table[k & 127];
}
`

func buildVictim(t *testing.T) *compiler.Artifact {
	t.Helper()
	a, err := hostileProgram{text: []byte(victim)}.build(t)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// sectionAt finds a section in an object file, and the offset of its header.
func sectionAt(t *testing.T, object []byte, name string) (s *elf.Section, header int) {
	t.Helper()
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	headers := binary.LittleEndian.Uint64(object[0x28:]) // e_shoff
	for i, s := range file.Sections {
		if s.Name == name {
			return s, int(headers) + i*64 // sizeof(Elf64_Shdr)
		}
	}
	t.Fatalf("the object has no section %s", name)
	return nil, 0
}

// Of an Elf64_Shdr.
const sectionSize = 0x20

// resize changes a section's size in its header.
func resize(name string, change func(uint64) uint64) func(*testing.T, []byte) {
	return func(t *testing.T, object []byte) {
		_, header := sectionAt(t, object, name)
		at := object[header+sectionSize:]
		binary.LittleEndian.PutUint64(at, change(binary.LittleEndian.Uint64(at)))
	}
}

// rename changes a name everywhere. Names end with a NUL, and one may be the suffix of another.
func rename(from, to string) func(*testing.T, []byte) {
	return func(t *testing.T, object []byte) {
		renamed := bytes.ReplaceAll(object, []byte(from+"\x00"), []byte(to+"\x00"))
		if len(from) != len(to) || bytes.Equal(renamed, object) {
			t.Fatalf("%s does not become %s", from, to)
		}
		copy(object, renamed)
	}
}

// relocate changes where the program's relocations are, and what they name.
func relocate(change func(offset, info uint64) (uint64, uint64)) func(*testing.T, []byte) {
	return func(t *testing.T, object []byte) {
		s, _ := sectionAt(t, object, ".relxdp.frags")
		for at := s.Offset; at < s.Offset+s.Size; at += 16 { // sizeof(Elf64_Rel)
			offset, info := change(binary.LittleEndian.Uint64(object[at:]), binary.LittleEndian.Uint64(object[at+8:]))
			binary.LittleEndian.PutUint64(object[at:], offset)
			binary.LittleEndian.PutUint64(object[at+8:], info)
		}
	}
}

// An artifact's statements about itself are checked, not believed.
func TestTamperedArtifactsAreRefused(t *testing.T) {
	h := openNeighbourhood(t)
	a := buildVictim(t)
	for name, tamper := range map[string]func(*testing.T, []byte){
		"fuel of its own":             rename(".data.fuel", ".data.food"),
		"fuel that is a constant":     rename(".data.fuel", ".rodata.fu"),
		"fuel of half the size":       resize(".data.fuel", func(uint64) uint64 { return 8 }),
		"fuel of more":                resize(".data.fuel", func(n uint64) uint64 { return n + 8 }),
		"memory of half the size":     resize(".data.memory", func(n uint64) uint64 { return n / 2 }),
		"memory of no size":           resize(".data.memory", func(uint64) uint64 { return 0 }),
		"more memory than allowed":    resize(".data.memory", func(uint64) uint64 { return 1 << 30 }),
		"more memory than there is":   resize(".data.memory", func(uint64) uint64 { return 1 << 62 }),
		"less of what is kept":        resize(".data.keep", func(uint64) uint64 { return 0 }),
		"a program cut short":         resize("xdp.frags", func(n uint64) uint64 { return n - 8 }),
		"a program cut in half":       resize("xdp.frags", func(n uint64) uint64 { return n/2 + 4 }),
		"a program of another kind":   rename("xdp.frags", "tc/ingres"),
		"a program of another name":   rename("lambda", "lambdb"),
		"no type information":         resize(".BTF", func(uint64) uint64 { return 0 }),
		"relocations beyond it":       relocate(func(offset, info uint64) (uint64, uint64) { return offset + 1<<40, info }),
		"relocations within others":   relocate(func(offset, info uint64) (uint64, uint64) { return offset + 4, info }),
		"relocations to the next":     relocate(func(offset, info uint64) (uint64, uint64) { return offset + 8, info }),
		"relocations to no symbol":    relocate(func(offset, info uint64) (uint64, uint64) { return offset, info | 1<<62 }),
		"relocations to another":      relocate(func(offset, info uint64) (uint64, uint64) { return offset, info&(1<<32-1) | 1<<32 }),
		"headers beyond the object":   func(_ *testing.T, object []byte) { binary.LittleEndian.PutUint64(object[0x28:], 1<<40) },
		"headers before the object":   func(_ *testing.T, object []byte) { binary.LittleEndian.PutUint64(object[0x28:], 1<<64-64) },
		"more headers than there are": func(_ *testing.T, object []byte) { binary.LittleEndian.PutUint16(object[0x3c:], 0xfff0) },
		"no object":                   func(_ *testing.T, object []byte) { clear(object) },
		"an object of another world":  func(_ *testing.T, object []byte) { object[0x12] = byte(elf.EM_X86_64) },
	} {
		t.Run(name, func(t *testing.T) {
			tampered := *a
			tampered.BPF = bytes.Clone(a.BPF)
			tamper(t, tampered.BPF)
			if err := h.put(t, &tampered, hostileID); err == nil {
				t.Error("accepted")
				if err := h.Remove(t.Context(), hostileID); err != nil {
					t.Error(err)
				}
			}
			h.checkNeighbour(t)
		})
	}
}

// An artifact's own hand-over map, under whatever name, is not the one that the NIC program reads.
func TestForeignHandOverIsContained(t *testing.T) {
	h := openNeighbourhood(t)
	a := buildVictim(t)
	rename("ln_requests", "ln_dispatch")(t, a.BPF)
	if err := h.put(t, a, hostileID); err != nil {
		return
	}
	for k := range 3 {
		h.ask(t, "hostile", 0, []byte{byte(k), 2, 3})
		h.checkNeighbour(t)
	}
	if err := h.Remove(t.Context(), hostileID); err != nil {
		t.Error(err)
	}
	h.checkNeighbour(t)
}

// Whatever byte changes in an artifact's instructions, or in what describes them, it is refused, or does its neighbour no harm and ends in
// time.
func TestMutatedArtifactsAreContained(t *testing.T) {
	h := openNeighbourhood(t)
	a := buildVictim(t)
	code, _ := sectionAt(t, a.BPF, "xdp.frags")
	for name, byteOf := range map[string]func(*rand.Rand) uint64{
		"instructions": func(r *rand.Rand) uint64 { return code.Offset + r.Uint64N(code.Size) },
		"anything":     func(r *rand.Rand) uint64 { return r.Uint64N(uint64(len(a.BPF))) },
	} {
		t.Run(name, func(t *testing.T) { h.mutate(t, a, byteOf) })
	}
}

// Some mutations of a byte are accepted and run, and some are refused: of the instructions, and of the rest.
func TestMutationsAreTakenAndRefused(t *testing.T) {
	h := openNeighbourhood(t)
	a := buildVictim(t)
	code, _ := sectionAt(t, a.BPF, "xdp.frags")
	factor := code.Offset
	for binary.LittleEndian.Uint32(a.BPF[factor+4:]) != 1000 { // the immediate of a struct bpf_insn
		if factor += 8; factor+8 > code.Offset+code.Size {
			t.Fatal("no instruction multiplies by 1000")
		}
	}
	for name, c := range map[string]struct {
		at    uint64
		to    byte
		taken bool
	}{
		"another number":     {factor + 4, 0xe7, true},
		"no instruction":     {factor, 0xff, false},
		"another padding":    {elf.EI_PAD, 1, true},
		"another byte order": {uint64(elf.EI_DATA), byte(elf.ELFDATA2MSB), false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := h.putMutated(t, a, c.at, c.to); (err == nil) != c.taken {
				t.Errorf("taken %t, want %t: %v", err == nil, c.taken, err)
			}
		})
	}
}

func (h *neighbourhood) mutate(t *testing.T, a *compiler.Artifact, byteOf func(*rand.Rand) uint64) {
	rounds := 400
	if testing.Short() {
		rounds = 50
	}
	r := seed.Rand(t)
	accepted := 0
	for i := range rounds {
		at := byteOf(r)
		if err := h.putMutated(t, a, at, byte(r.Uint32())); err == nil {
			accepted++
		} else if strings.Contains(err.Error(), "of the NIC:") {
			t.Fatal(err) // it has no room
		}
		if t.Failed() {
			t.Fatalf("mutation %d, of byte %d", i, at)
		}
	}
	t.Logf("%d of %d mutations were accepted", accepted, rounds)
}

// putMutated changes a byte of an artifact, and asks it a few things beside the neighbour if it is taken.
func (h *neighbourhood) putMutated(t *testing.T, a *compiler.Artifact, at uint64, to byte) error {
	t.Helper()
	mutated := *a
	mutated.BPF = bytes.Clone(a.BPF)
	mutated.BPF[at] = to
	if err := h.put(t, &mutated, hostileID); err != nil {
		return err
	}
	for k := range 3 {
		h.ask(t, "hostile", 0, []byte{byte(k * 100), 2, 3})
	}
	h.checkNeighbour(t)
	if err := h.Remove(t.Context(), hostileID); err != nil {
		t.Fatal(err)
	}
	return nil
}

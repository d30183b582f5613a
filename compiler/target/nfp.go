package target

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler/check/flow"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// Offload is what the firmware of a card accepts, into which the nfp driver loads programs
// (drivers/net/ethernet/netronome/nfp/bpf/{verifier,jit,offload}.c in Linux).
type Offload struct {
	Instructions int `yaml:"instructions"`
	Stack        int `yaml:"stack"`
	Packet       int `yaml:"packet"` // bytes of it that a program reaches
	Maps         int `yaml:"maps"`
	Entries      int `yaml:"entries"` // of all maps
	Element      int `yaml:"element"` // bytes of key and value
	Key          int `yaml:"key"`
	Value        int `yaml:"value"`
}

// A Violation is something that keeps a program off a card.
type Violation struct {
	Place  diagnose.Place `json:"place"`
	What   string         `json:"what"`
	Remedy string         `json:"remedy"`
}

func (v Violation) String() string {
	text := v.What
	if v.Remedy != "" {
		text += ": " + v.Remedy
	}
	if v.Place.File == "" {
		return text
	}
	return fmt.Sprintf("%v: %s", v.Place, text)
}

// Check lists what keeps the program of a BPF object file off the card, in the order of lines. The driver checks what Check cannot see: the
// bounds of numbers, and the length of the program that it generates.
func (o *Offload) Check(object []byte, program string) ([]Violation, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("check for offload: %w", err)
	}
	p := spec.Programs[program]
	if p == nil {
		return nil, fmt.Errorf("check for offload: there is no program %s", program)
	}
	g, err := flow.New(p.Instructions)
	if err != nil {
		return nil, fmt.Errorf("check for offload: %w", err)
	}
	c := &checker{offload: o, graph: g, spec: spec, uses: map[word]use{}, updated: map[string]bool{}}
	if p.Flags&unix.BPF_F_XDP_HAS_FRAGS != 0 {
		c.violation(-1, "leave the section's suffix out", "packets of several fragments, in which no card lays them") // bpf_prog_dev_bound_init() in kernel/bpf/offload.c
	}
	c.checkMaps()
	c.checkSize()
	known := flow.Track(g, entry, c.step, registers.join)
	for i, s := range known {
		if s != nil {
			c.checkInstruction(i, s)
		}
	}
	c.checkUpdated()
	slices.SortStableFunc(c.found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line))
	})
	return slices.Compact(c.found), nil
}

// entry is what is known where a function begins: the first gets the context, and nothing is known of the others' arguments.
func entry(f int) registers {
	s := registers{asm.R10: {kind: stack, known: true}}
	if f == 0 {
		s[asm.R1] = value{kind: context}
	}
	return s
}

type checker struct {
	offload *Offload
	graph   *flow.Graph
	spec    *ebpf.CollectionSpec
	uses    map[word]use
	updated map[string]bool // maps whose elements the program stores
	found   []Violation
}

func (c *checker) violation(i int, remedy, format string, args ...any) {
	v := Violation{What: fmt.Sprintf(format, args...), Remedy: remedy}
	if i >= 0 {
		v.Place = diagnose.PlaceOf(c.graph.Insns, i)
	}
	c.found = append(c.found, v)
}

// checkMaps checks the maps that the program uses (nfp_bpf_map_alloc in offload.c).
func (c *checker) checkMaps() {
	used := map[string]bool{}
	entries := 0
	for i := range c.graph.Insns {
		ins := &c.graph.Insns[i]
		m := c.spec.Maps[ins.Reference()]
		if !ins.IsLoadFromMap() || m == nil || used[m.Name] {
			continue
		}
		used[m.Name] = true
		if ins.Src == asm.PseudoMapValue {
			continue // checkInstruction reports it
		}
		entries += int(m.MaxEntries)
		c.checkMap(i, m)
	}
	if len(used) > c.offload.Maps {
		c.violation(-1, "put several into one", "%d maps, the card has %d", len(used), c.offload.Maps)
	}
	if entries > c.offload.Entries {
		c.violation(-1, "make them smaller", "%d elements in all maps, the card has %d", entries, c.offload.Entries)
	}
}

func (c *checker) checkMap(i int, m *ebpf.MapSpec) {
	if m.Type != ebpf.Array && m.Type != ebpf.Hash { // and bpf_map_offload_map_alloc() in kernel/bpf/offload.c
		c.violation(i, "use an Array or a Hash", "the map %s is a %v", m.Name, m.Type)
	}
	if m.Flags != 0 {
		c.violation(i, "leave them out", "the map %s has flags", m.Name)
	}
	key, value := int(m.KeySize), int(m.ValueSize)
	if key > c.offload.Key || value > c.offload.Value || roundUp8(key)+roundUp8(value) > c.offload.Element {
		c.violation(i, "spread it over several maps, or keep the rest on the host",
			"an element of the map %s has %d bytes of key and %d of value, the card takes %d together", m.Name, key, value, c.offload.Element)
	}
}

func roundUp8(n int) int { return (n + 7) &^ 7 }

// checkSize checks the program's length and its stack: the deepest byte that each function stores to, added up over nested calls
// (nfp_bpf_get_stack_usage in verifier.c).
func (c *checker) checkSize() {
	if n := len(c.graph.Insns); n > c.offload.Instructions {
		c.violation(-1, "make loops that are unrolled shorter, or functions noinline", "%d instructions, the card takes %d", n, c.offload.Instructions)
	}
	if total := c.graph.Deepest(0, c.frameOf); total > c.offload.Stack {
		c.violation(-1, "make local arrays smaller", "%d bytes of stack, the card has %d", total, c.offload.Stack)
	}
}

// What a call also puts on the card's stack: a return address, and r6 to r9 if the callee changes one of them (nfp_bpf_finalize and
// nfp_assign_subprog_idx_and_regs in verifier.c). Frames are aligned (STACK_FRAME_ALIGN in main.h).
const (
	returnAddress = 4
	frameAlign    = 64
)

func (c *checker) savedRegisters(from, to int) int {
	for i := from; i < to; i++ {
		if r := c.graph.Insns[i].Dst; r >= asm.R6 && r <= asm.R9 {
			return 4 * 8
		}
	}
	return 0
}

func (c *checker) frameOf(k int) int {
	bytes := c.graph.Frame(k)
	if k > 0 {
		f := c.graph.Funcs[k]
		bytes += returnAddress + c.savedRegisters(f.From, f.To)
	}
	return (bytes + frameAlign - 1) / frameAlign * frameAlign
}

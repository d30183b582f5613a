package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/target"
)

// An Object is a variable of the author's or the SDK's, and its place.
type Object struct {
	Name    string         `json:"name"`
	Size    uint64         `json:"size"`
	Where   string         `json:"where"` // rodata, array, linear, shared, stack, register, or the map's kind
	Why     string         `json:"why,omitempty"`
	Pattern target.Pattern `json:"pattern"`
	Hint    string         `json:"hint,omitempty"`
	Uses    int            `json:"uses"` // instructions that take its address
	File    string         `json:"file,omitempty"`
	Line    int            `json:"line,omitempty"`
}

func read(object []byte) (*ebpf.CollectionSpec, error) {
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("read BPF object: %w", err)
	}
	return spec, nil
}

// findObjects lists the objects in the passes' remarks, and what else is in the maps.
func (r *Report) findObjects(spec *ebpf.CollectionSpec, remarks []Remark) {
	said := map[string]bool{}
	for _, m := range remarks {
		if m.Kind != "object" {
			continue
		}
		said[m.Object] = true
		if m.Where == "shared" && m.State == "written" {
			m.Why = "it is written, and lasts over requests; " + m.Why
		}
		r.Objects = append(r.Objects, Object{
			Name: m.Object, Size: m.Size, Where: m.Where, Why: m.Why, Pattern: patternOf(m), File: m.File, Line: m.Line,
		})
	}
	for name, v := range spec.Variables {
		if !said[name] && v.SectionName != metering.FuelMap {
			r.Objects = append(r.Objects, inSection(spec, name, v))
		}
	}
	for name, m := range spec.Maps {
		if o, ok := nameless(spec, m); ok {
			r.Objects = append(r.Objects, o)
		}
		if !said[name] && !strings.HasPrefix(name, ".") && name != compiler.SharedMap && name != compiler.PassMap {
			r.Objects = append(r.Objects, inMap(spec, m))
		}
	}
	slices.SortFunc(r.Objects, func(a, b Object) int { return cmp.Or(cmp.Compare(b.Size, a.Size), strings.Compare(a.Name, b.Name)) })
}

// messages is the SDK's variable for mode assemble. Its content belongs to one request, too.
const messages = "lambda_messages"

func patternOf(m Remark) target.Pattern {
	switch {
	case m.Where == "rodata", m.Where == "shared" && m.State == "constant":
		return target.ReadOnly
	case m.Where == "stack", m.Where == "linear", m.Object == messages:
		return target.Request
	default:
		return target.Written
	}
}

// inSection describes a variable in a section.
func inSection(spec *ebpf.CollectionSpec, name string, v *ebpf.VariableSpec) Object {
	o := Object{Name: name, Size: uint64(v.Size()), Where: "array", Pattern: target.Written, Why: "it is written, and lasts"}
	end := v.Offset + v.Size()
	stored := false
	eachUse(spec, v.SectionName, func(insns asm.Instructions, i int) {
		if at := uint32(uint64(insns[i].Constant) >> 32); insns[i].Src == asm.PseudoMapValue && at >= v.Offset && at < end {
			o.Uses++
			stored = stored || storesNear(insns, i)
		}
	})
	switch {
	case strings.HasPrefix(v.SectionName, ".rodata"):
		o.Where, o.Pattern, o.Why = "rodata", target.ReadOnly, "it is constant: frozen, the verifier folds it"
	case strings.HasSuffix(v.SectionName, ".messages"):
		o.Pattern, o.Why = target.Request, "it holds the messages in flight"
	case !stored:
		o.Pattern, o.Why = target.ReadMostly, "nothing near stores to it"
	}
	return o
}

// storesNear tells whether the register that gets an address is stored through, or copied, before it is overwritten.
func storesNear(insns asm.Instructions, i int) bool {
	r := insns[i].Dst
	for _, ins := range insns[i+1:] {
		class := ins.OpCode.Class()
		switch {
		case class.IsStore() && (ins.Dst == r || ins.Src == r), ins.OpCode.JumpOp() == asm.Call && r >= asm.R1 && r <= asm.R5:
			return true
		case class.IsALU() && ins.OpCode.Source() == asm.RegSource && ins.Src == r:
			return true
		case ins.Dst == r && (class.IsLoad() || ins.OpCode.ALUOp() == asm.Mov), ins.OpCode.JumpOp() == asm.Exit:
			return false
		}
	}
	return false
}

// nameless describes a section's content besides variables: string literals, and tables that the compiler made.
func nameless(spec *ebpf.CollectionSpec, m *ebpf.MapSpec) (o Object, ok bool) {
	rest := uint64(m.ValueSize)
	for _, v := range spec.Variables {
		if v.SectionName == m.Name {
			rest -= min(rest, uint64(v.Size()))
		}
	}
	const padding = 64
	if rest <= padding || !strings.HasPrefix(m.Name, ".rodata") {
		return o, false
	}
	o = Object{Name: "constants without names", Size: rest, Where: "rodata", Pattern: target.ReadOnly, Why: "it is constant: frozen, the verifier folds it"}
	eachUse(spec, m.Name, func(asm.Instructions, int) { o.Uses++ })
	return o, true
}

func inMap(spec *ebpf.CollectionSpec, m *ebpf.MapSpec) Object {
	o := Object{Name: m.Name, Size: uint64(m.MaxEntries) * uint64(m.KeySize+m.ValueSize), Where: m.Type.String()}
	switch m.Type {
	case ebpf.PerCPUArray:
		o.Pattern, o.Why = target.Request, "each processor has a copy of its own"
	case ebpf.Array:
		o.Pattern, o.Why = target.Written, "it is looked up by index"
	default:
		o.Pattern, o.Why = target.Keyed, "it is looked up by a key"
	}
	eachUse(spec, m.Name, func(asm.Instructions, int) { o.Uses++ })
	return o
}

// eachUse calls f for each instruction that takes the address of a map or of its content.
func eachUse(spec *ebpf.CollectionSpec, name string, f func(insns asm.Instructions, i int)) {
	for _, p := range spec.Programs {
		for i := range p.Instructions {
			if p.Instructions[i].IsLoadFromMap() && p.Instructions[i].Reference() == name {
				f(p.Instructions, i)
			}
		}
	}
}

// heedHints says what each object's hint came to on this processor. Objects that were optimised away have none.
func (r *Report) heedHints(remarks []Remark) {
	heeded := map[string]bool{}
	for _, m := range remarks {
		if m.Kind == "hint" && m.State == "heeded" {
			heeded[m.Object] = true
		}
	}
	for _, m := range remarks {
		i := slices.IndexFunc(r.Objects, func(o Object) bool { return o.Name == m.Object && o.Where != "stack" })
		if m.Kind == "hint" && m.Hint != "" && i >= 0 {
			o := &r.Objects[i]
			o.Hint = m.Hint
			o.Why += "; " + o.heed(heeded[m.Object])
		}
	}
}

// heed says what the object's hint came to.
func (o *Object) heed(heeded bool) string {
	switch {
	case heeded:
		o.Pattern = target.ReadMostly
		return "__" + o.Hint + ": in a map of its own, away from what is written often"
	case o.Hint == "read_mostly" && o.Pattern == target.ReadOnly:
		return "not as __read_mostly asks: nothing writes to it at all"
	case o.Hint == "read_mostly":
		return "not apart, as __read_mostly asks: what is kept, or used by its address, lies together"
	case o.Hint == "hot":
		return "__hot: no memory that requests share is nearer"
	default:
		return "__" + o.Hint + " is for another processor"
	}
}

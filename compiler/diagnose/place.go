package diagnose

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// A Place is a line of a source file.
type Place struct {
	File string `json:"file"` // without its directory
	Line int    `json:"line"`
	Text string `json:"text,omitempty"` // what stands there
}

func (p Place) String() string {
	if p.File == "" {
		return "unknown line"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// PlaceOf returns the line that the instruction at index i comes from, as the object's line information has it: lines are named
// at the first of their instructions. What was inlined from a header is put down to the C file's line before it, if there is one
// in the same function, since an author knows no other.
func PlaceOf(insns asm.Instructions, i int) Place {
	var header Place
	for ; i >= 0; i-- {
		if line, ok := insns[i].Source().(*btf.Line); ok {
			p := Place{File: path.Base(line.FileName()), Line: int(line.LineNumber()), Text: line.Line()}
			if path.Ext(p.File) == ".c" {
				return p
			}
			if header.File == "" {
				header = p
			}
		}
		if btf.FuncMetadata(&insns[i]) != nil {
			break
		}
	}
	return header
}

// Helper is the name by which authors know a function of the kernel.
func Helper(fn asm.BuiltinFunc) string {
	var b strings.Builder
	b.WriteString("bpf")
	for _, r := range strings.TrimPrefix(fn.String(), "Fn") {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

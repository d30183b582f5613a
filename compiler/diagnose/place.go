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
	Text string `json:"text,omitempty"` // of the line
}

func (p Place) String() string {
	if p.File == "" {
		return "unknown line"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// PlaceOf returns the source line of the instruction at index i, from the line information, which names a line at the first of its
// instructions. Code that was inlined from a header gets the previous line of the C file in the same function, if there is one, since
// an author knows no other.
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

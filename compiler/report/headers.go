package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/match"
)

// A Header is a packet header of a match stage, with the fields that are left after optimisation.
type Header struct {
	Name     string   `json:"name"`
	Bytes    int      `json:"bytes"`
	Read     []string `json:"read,omitempty"`
	Written  []string `json:"written,omitempty"` // if they changed
	Checksum string   `json:"checksum,omitempty"`
}

// findHeaders says which fields of the packet's headers the program reads and writes: those of the parser's and deparser's lines that still
// have instructions.
func (r *Report) findHeaders(stage *compiler.Stage, remarks []Remark) {
	for _, h := range stage.Code.Headers {
		out := Header{Name: h.Name, Bytes: h.Bytes(), Checksum: checksumOf(stage.Code.Calculations, h)}
		for _, f := range h.Fields {
			if remains(remarks, "read", stage.Code.Reads, f) {
				out.Read = append(out.Read, f.Name)
			}
			if remains(remarks, "written", stage.Code.Writes, f) {
				out.Written = append(out.Written, f.Name)
			}
		}
		r.Headers = append(r.Headers, out)
	}
}

func remains(remarks []Remark, state string, lines map[int][]*match.Field, f *match.Field) bool {
	return slices.ContainsFunc(remarks, func(m Remark) bool {
		return m.Kind == "header" && m.State == state && slices.Contains(lines[m.Line], f)
	})
}

func checksumOf(calculations []*match.Calculation, h *match.Header) string {
	var does []string
	for _, c := range calculations {
		if c.Field.Header != h {
			continue
		}
		if c.Verify {
			does = append(does, c.Field.Name+" is verified")
		}
		if c.Update {
			does = append(does, c.Field.Name+" is updated by what changed (RFC 1624)")
		}
	}
	return strings.Join(does, ", ")
}

func (r *Report) textOfHeaders(t *text) {
	if len(r.Headers) == 0 {
		return
	}
	t.head("header\tbytes\tread\twritten where changed\tchecksum")
	for _, h := range r.Headers {
		t.line("%s", strings.Join([]string{h.Name, fmt.Sprint(h.Bytes), listed(h.Read), listed(h.Written), h.Checksum}, "\t"))
	}
}

func listed(names []string) string {
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, " ")
}

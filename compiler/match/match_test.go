package match

import (
	"math/big"
	"strings"
	"testing"
)

// stage makes a small match stage: a header that is parsed, one that is not, metadata, and the tables of two lambdas, with their own data,
// that send packets back.
func stage() (*Program, *Header, *Header, *Header) {
	field := func(h *Header, name string, width int) {
		h.Fields = append(h.Fields, &Field{Header: h, Name: name, Width: width, Offset: h.Bits()})
	}
	job := &Header{Name: "job", Type: "job_t"}
	field(job, "number", 32)
	field(job, "data", 128)
	unused := &Header{Name: "unused", Type: "job_t"}
	field(unused, "number", 32)
	meta := &Header{Name: "meta", Type: "meta_t", Metadata: true}
	field(meta, "read", 8)
	field(meta, "written", 8)
	std := NewStandardMetadata()
	p := &Program{Headers: []*Header{std, job, unused, meta}}
	never := &State{Name: "never", Steps: []Stmt{Extract{unused}}}
	p.States = []*State{{Name: "start", Steps: []Stmt{Extract{job}}}, never}
	back := &Action{Name: "back", Params: []string{"n"}, Body: []Stmt{
		Assign{meta.Fields[1], Num(1)},
		Assign{job.Fields[0], Arg{0, "n"}},
		Assign{std.Field("egress_spec"), Ref{std.Field("ingress_port")}},
	}}
	table := func(name string, n uint64) *Table {
		return &Table{Name: name, Actions: []*Action{back}, Default: &Call{back, []Expr{Num(n)}}}
	}
	one, two := table("one", 1), table("two", 2)
	ports := &Table{
		Name: "ports", Actions: []*Action{back}, Keys: []Key{{Kind: Exact, Expr: Ref{std.Field("ingress_port")}}},
		Rules: []Rule{
			{Name: "from the host", Values: []Masked{{Value: big.NewInt(PortHost)}}, Call: Call{back, []Expr{Num(3)}}},
			{Name: "from the wire", Values: []Masked{{Value: big.NewInt(PortWire)}}, Call: Call{back, []Expr{Num(4)}}},
		},
	}
	p.Tables = []*Table{one, two, ports}
	is := func(n uint64) Expr { return Binary{"==", Ref{job.Fields[0]}, Num(n)} }
	p.Ingress = []Stmt{If{is(1), []Stmt{Primitive{"first"}, Apply{Table: one}}, []Stmt{
		If{is(2), []Stmt{Primitive{"second"}, Apply{Table: two}}, []Stmt{
			If{IsValid{unused}, []Stmt{Primitive{"third"}}, []Stmt{Apply{Table: ports}}},
		}},
	}}}
	p.Primitives = []string{"first", "second", "third"}
	return p, job, unused, meta
}

func TestReduce(t *testing.T) {
	p, _, unused, meta := stage()
	steps := Reduce(p, Uses{})
	const want = `state start
  extract job
  else: ingress
ingress
  if (job.number == 1)
    call first
    merged.apply_one = 1
    merged.apply_one_n_0 = 1
  else
    if (job.number == 2)
      call second
      merged.apply_one = 1
      merged.apply_one_n_0 = 2
    else
      job.number = 4
      standard_metadata.egress_spec = 0
  if (merged.apply_one == 1)
    job.number = merged.apply_one_n_0
    standard_metadata.egress_spec = 0
egress
`
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if p.Header(unused.Name) != nil || p.Header(meta.Name) != nil {
		t.Error("unused headers are left")
	}
	if got := strings.Join(p.Primitives, " "); got != "first second" {
		t.Errorf("primitives %s", got)
	}
	first, last := steps[0], steps[len(steps)-1]
	if first.Tables != 3 || last.Tables != 0 || first.Headers != 2 || last.Headers != 1 || last.Fields != 1 {
		t.Errorf("steps\n%v\n%v", first, last)
	}
	for _, s := range steps {
		t.Log(s)
	}
}

// Fields that the lambda's C names stay.
func TestReduceKeepsWhatIsUsed(t *testing.T) {
	p, _, unused, meta := stage()
	uses := Uses{}
	uses.Add(`int f(void) { pif_plugin_hdr_get_unused(headers); /* pif_plugin_hdr_get_job */
		return pif_plugin_meta_get__meta__written(headers); "pif_plugin_meta_get__meta__read" }`)
	Reduce(p, uses)
	if p.Header(unused.Name) == nil {
		t.Error("a header that the lambda uses is gone")
	}
	h := p.Header(meta.Name)
	if h == nil || h.Field("written") == nil || h.Field("read") != nil {
		t.Errorf("metadata %+v", h)
	}
	if uses.header(p.Header("job")) {
		t.Error("a comment is taken for a use")
	}
}

func TestUses(t *testing.T) {
	u := Uses{}
	u.Add("a1 // b\n/* c */ \"d\\\"e\" 'f' g_ 0x1h /")
	for name, want := range map[string]bool{"a1": true, "b": false, "c": false, "d": false, "e": false, "f": false, "g_": true} {
		if u[name] != want {
			t.Errorf("%q used: %t, want %t", name, u[name], want)
		}
	}
}

// A cell begins and ends at byte boundaries, and every word is in a cell.
func TestCells(t *testing.T) {
	h := &Header{Name: "h"}
	for _, w := range []int{4, 4, 12, 36, 8, 160} {
		h.Fields = append(h.Fields, &Field{Header: h, Name: "f", Width: w, Offset: h.Bits()})
	}
	at := 0
	for _, c := range h.cells() {
		if c.first != at || c.bytes < 1 {
			t.Errorf("cell of %d bytes at %d, want it at %d", c.bytes, c.first, at)
		}
		at += c.bytes
	}
	if at != h.Bytes() {
		t.Errorf("the cells end at %d of %d", at, h.Bytes())
	}
}

func TestFold(t *testing.T) {
	x := Ref{&Field{Header: &Header{Name: "h"}, Name: "x", Width: 8}}
	for _, test := range []struct {
		in   Expr
		want string
	}{
		{Binary{"&&", Num(1), x}, "h.x"},
		{Binary{"&&", x, Num(0)}, "0"},
		{Binary{"||", x, Num(1)}, "1"},
		{Binary{"||", Num(0), x}, "h.x"},
		{Unary{"!", Num(3)}, "0"},
		{Binary{"==", Num(3), Num(3)}, "1"},
		{Binary{"<", Num(3), Num(3)}, "0"},
		{Binary{"&", Num(6), Num(3)}, "2"},
		{Binary{"+", Num(6), Num(3)}, "(6 + 3)"},
	} {
		if got := exprText(fold(test.in)); got != test.want {
			t.Errorf("%s: got %s, want %s", exprText(test.in), got, test.want)
		}
	}
}

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lambdanic/lambdanic/compiler/check/metering"
	"github.com/lambdanic/lambdanic/compiler/target"
)

// Text writes a report for people.
func (r *Report) Text(w io.Writer) error {
	t := &text{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.line("lambda %s", r.Lambda)
	r.textOfMatch(t)
	r.textOfHeaders(t)
	r.textOfSteps(t)
	r.textOfTime(t)
	r.textOfChecks(t)
	r.textOfAtomics(t)
	r.textOfObjects(t)
	r.textOfHints(t)
	r.textOfOffload(t)
	if t.err != nil {
		return t.err
	}
	return t.w.Flush()
}

// text keeps the first write error.
type text struct {
	w   *tabwriter.Writer
	err error
}

func (t *text) line(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintln(t.w, strings.Map(printable, fmt.Sprintf(format, args...)))
	}
}

// printable removes terminal commands from names, which authors choose.
func printable(r rune) rune {
	if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 {
		return '\uFFFD'
	}
	return r
}

func (t *text) head(format string, args ...any) {
	t.line("")
	t.line(format, args...)
}

func (r *Report) textOfMatch(t *text) {
	if len(r.Match) == 0 {
		return
	}
	t.head("match stage\ttables\theaders\tfields\tmetadata\tstatements")
	for _, s := range r.Match {
		t.line("%s\t%d\t%d\t%d\t%d\t%d", s.Name, s.Tables, s.Headers, s.Fields, s.Metadata, s.Statements)
	}
}

func (r *Report) textOfSteps(t *text) {
	t.head("step\tinstructions\t")
	for i, s := range r.Steps {
		change := ""
		if i > 0 && r.Steps[i-1].Of == s.Of && r.Steps[i-1].Instructions > 0 {
			before := r.Steps[i-1].Instructions
			change = fmt.Sprintf("%+.1f %%", 100*float64(s.Instructions-before)/float64(before))
		}
		t.line("%s\t%d %s\t%s", s.Name, s.Instructions, s.Of, change)
	}
}

func (r *Report) textOfTime(t *text) {
	t.head("time")
	t.line("estimated\t%.0f ns%s", r.EstimatedNs, besides(r.Bound))
	for _, l := range r.Loops {
		t.line("loop at %v\t%.1f ns per iteration (charged %d)", l.Place, l.EstimatedNs, l.Cost)
	}
	if v := r.Verified; v != nil {
		t.line("verifier\t%d instructions walked, %d states, %d bytes of stack", v.Instructions, v.States, v.Stack)
	}
}

func besides(b metering.Bound) string {
	switch {
	case b.Metered:
		return ", each loop once; all end within limits.time"
	case b.Pace > 0:
		return ", each loop once; the verifier walks them to their ends"
	default:
		return " on the longest path"
	}
}

func (r *Report) textOfChecks(t *text) {
	if len(r.Checks.At) == 0 && len(r.Calls) == 0 {
		return
	}
	t.head("checks\t%d inserted, %d proven and left out", r.Checks.Inserted, r.Checks.Proven)
	for _, c := range r.Checks.byLine() {
		t.line("%s\t%s", c.at, c.what)
	}
	for _, m := range r.Calls {
		t.line("%s\t%s is %s", m.at(), m.Function, m.State)
	}
}

// A checked line, and what is checked there.
type checked struct{ at, what string }

// byLine sorts the checks that were inserted by their lines, and counts equal ones.
func (c Checks) byLine() (lines []checked) {
	sites := slices.DeleteFunc(slices.Clone(c.At), func(m Remark) bool { return m.State == "proven" })
	slices.SortStableFunc(sites, func(a, b Remark) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Why, b.Why))
	})
	for len(sites) > 0 {
		first, n := sites[0], 0
		for n < len(sites) && sites[n] == first {
			n++
		}
		sites = sites[n:]
		what := first.Why
		if n > 1 {
			what += fmt.Sprintf(", %d times", n)
		}
		lines = append(lines, checked{first.at(), what})
	}
	return lines
}

func (r *Report) textOfAtomics(t *text) {
	if len(r.Atomics) == 0 {
		return
	}
	t.head("shared by CPUs")
	for _, m := range r.Atomics {
		if m.State == "left" {
			t.line("%s\t%s may lose changes: %s", m.at(), m.Object, m.Why)
		} else {
			t.line("%s\t%s changes by an atomic operation", m.at(), m.Object)
		}
	}
}

func (r *Report) textOfObjects(t *text) {
	if len(r.Objects) == 0 {
		return
	}
	names := target.Names()
	t.head("object\tbytes\tuse\tnow in\t%s\twhy", strings.Join(names, "\t"))
	for _, o := range r.Objects {
		row := []string{o.Name, fmt.Sprint(o.Size), string(o.Pattern), o.Where}
		for _, model := range names {
			row = append(row, memoryOf(r.Placements[model], o.Name))
		}
		t.line("%s", strings.Join(append(row, o.Why), "\t"))
	}
}

// textOfHints says what hints came to on other processors. For this processor, the objects' own lines say it.
func (r *Report) textOfHints(t *text) {
	hinted := slices.DeleteFunc(slices.Clone(r.Objects), func(o Object) bool { return o.Hint == "" })
	if len(hinted) == 0 {
		return
	}
	t.head("hint\ton\tmemory\twhy")
	for _, o := range hinted {
		for _, model := range target.Names() {
			for _, p := range r.Placements[model] {
				if p.Object.Name == o.Name && model != "kernel" {
					t.line("__%s %s\t%s\t%s\t%s", o.Hint, o.Name, model, cmp.Or(p.Memory, "-"), p.Why)
				}
			}
		}
	}
}

func memoryOf(placements []target.Placement, object string) string {
	i := slices.IndexFunc(placements, func(p target.Placement) bool { return p.Object.Name == object })
	if i < 0 || placements[i].Memory == "" {
		return "-"
	}
	return placements[i].Memory
}

func (r *Report) textOfOffload(t *text) {
	if len(r.Offload) == 0 {
		t.head("offload\tnothing is known that keeps it off an Agilio CX")
		return
	}
	reasons := "reasons keep"
	if len(r.Offload) == 1 {
		reasons = "reason keeps"
	}
	t.head("offload\t%d %s it off an Agilio CX: lambdanic build --target nfp", len(r.Offload), reasons)
}

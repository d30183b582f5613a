package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/compiler/target"
)

func pack(t *testing.T, dir string) []byte {
	t.Helper()
	source, err := compiler.PackSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// lambda packs a lambda of one C file.
func lambda(t *testing.T, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"lambda.yml": "name: probe\ntargets: [nic]\n", "probe.c": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return pack(t, dir)
}

func TestReport(t *testing.T) {
	for _, name := range []string{"web_server", "kv_client", "image_transformer"} {
		t.Run(name, func(t *testing.T) {
			r, err := Make(t.Context(), pack(t, "../../lambdas/"+name), Options{Verify: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Lambda != name || len(r.Steps) < 2 || r.EstimatedNs <= 0 || len(r.Objects) == 0 {
				t.Errorf("%+v", r)
			}
			for _, s := range r.Steps {
				if s.Instructions == 0 {
					t.Errorf("step %+v", s)
				}
			}
			if v := r.Verified; v == nil || v.Instructions < 10 || v.Stack == 0 || len(v.Log) == 0 {
				t.Errorf("verified: %+v", v)
			}
			for _, model := range target.Names() {
				if len(r.Placements[model]) == 0 {
					t.Errorf("nothing is placed on %s", model)
				}
			}
			var out bytes.Buffer
			if err := r.Text(&out); err != nil {
				t.Error(err)
			}
			t.Log(out.String())
			if data, err := json.Marshal(r); err != nil || len(data) < 100 {
				t.Errorf("as JSON: %d bytes (%v)", len(data), err)
			}
		})
	}
}

// The paper's memories for the web server's pages (read-only, shared by all cores) follow from how the source uses them.
func TestObjectsOfWebServer(t *testing.T) {
	r, err := Make(t.Context(), pack(t, "../../lambdas/web_server"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(r.Objects, func(o Object) bool { return o.Where == "rodata" && o.Pattern == target.ReadOnly && o.Uses > 0 }) {
		t.Errorf("no constant object in %+v", r.Objects)
	}
}

func TestVerifierObjects(t *testing.T) {
	source := lambda(t, "#include \"lambda.h\"\nint probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n"+
		"\tuint8_t *p = payload(headers, 0, 4);\n\n\tif (!p)\n\t\treturn RETURN_DROP;\n\tp[9] = 1;\n\treturn RETURN_FORWARD;\n}\n")
	_, err := Make(t.Context(), source, Options{Verify: true})
	var o *diagnose.Objection
	if !errors.As(err, &o) {
		t.Fatalf("the kernel takes it, or %v", err)
	}
	if o.Place.File != "probe.c" || o.Place.Line != 8 || o.Advice == "" || len(o.Log) < 10 {
		t.Errorf("objection %v", o)
	}
}

func TestRemarks(t *testing.T) {
	remarks := parseRemarks([]byte("{\"kind\":\"step\",\"step\":\"begin\",\"instructions\":812}\nnonsense\n{}\n" +
		"{\"kind\":\"check\",\"state\":\"proven\",\"file\":\"a.c\",\"line\":3}\n{\"kind\":\"check\",\"state\":\"inserted\",\"why\":\"index\"}\n" +
		"{\"kind\":\"header\",\"state\":\"read\",\"line\":12}\n" +
		"{\"kind\":\"call\",\"function\":\"f\",\"state\":\"inlined\"}\x00\n{\"kind\":\"some day\"}"))
	if len(remarks) != 6 {
		t.Errorf("%d remarks: %+v", len(remarks), remarks)
	}
	var r Report
	r.take(remarks)
	if r.Checks.Inserted != 1 || r.Checks.Proven != 1 || len(r.Calls) != 1 {
		t.Errorf("%+v", r)
	}
	if at := remarks[1].at(); at != "a.c:3" {
		t.Errorf("at %q", at)
	}
}

func TestChecksByLine(t *testing.T) {
	c := Checks{At: []Remark{
		{File: "a.c", Line: 9, Why: "later"}, {File: "a.c", Line: 3, Why: "index"}, {File: "a.c", Line: 3, Why: "index"},
		{File: "a.c", Line: 1, State: "proven"},
	}}
	if lines := c.byLine(); !slices.Equal(lines, []checked{{"a.c:3", "index, 2 times"}, {"a.c:9", "later"}}) {
		t.Errorf("%v", lines)
	}
}

// The passes say what they did to ordinary C.
func TestRemarksOfThePasses(t *testing.T) {
	r, err := Make(t.Context(), pack(t, "../corpus/greyscale"), Options{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, s := range r.Steps {
		steps = append(steps, s.Name)
	}
	if want := []string{"begin", "calls", "float", "arithmetic", "memory", "metering", "object"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	if r.Checks.Inserted == 0 || len(r.Loops) == 0 || !r.Bound.Metered {
		t.Errorf("%d checks inserted, %d loops metered", r.Checks.Inserted, len(r.Loops))
	}
	var out bytes.Buffer
	if err := r.Text(&out); err != nil || !strings.Contains(out.String(), "greyscale.c:") {
		t.Errorf("%v:\n%s", err, &out)
	}
}

func TestCountLLVM(t *testing.T) {
	const module = `
@g = global i32 0
define i32 @f(i32 %x) {
entry:
  %p = alloca i32
  call void @llvm.lifetime.start.p0(i64 4, ptr %p)
    #dbg_value(i32 %x, !1, !DIExpression(), !2)
  switch i32 %x, label %b [
    i32 1, label %b
  ]

b:                                                ; preds = %entry
  ret i32 0
}
declare void @h()
`
	if n := countLLVM([]byte(module)); n != 3 {
		t.Errorf("%d instructions, want alloca, switch and ret", n)
	}
}

func TestTextShowsNoControls(t *testing.T) {
	r := Report{Lambda: "x", Headers: []Header{{Name: "\x1b[2Jgone"}}}
	var out bytes.Buffer
	if err := r.Text(&out); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q (%v)", out.String(), err)
	}
}

// The report of a lambda with its own match stage says how the stage was reduced.
func TestReportOfMatchStage(t *testing.T) {
	r, err := Make(t.Context(), pack(t, "../p4/testdata/web_server"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Match) < 2 || r.Match[0].Tables != 6 || r.Match[len(r.Match)-1].Tables != 0 {
		t.Errorf("match stage: %+v", r.Match)
	}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "tables to if-else") {
		t.Errorf("it is not in the text:\n%s", b.String())
	}
}

// The report has the header fields that are left: the deparser writes no length if none changes, and the parser reads nothing of a header
// that the lambda fills.
func TestReportOfHeaders(t *testing.T) {
	for lambda, want := range map[string]Header{
		"web_server": {
			Name: "udp", Bytes: 8, Read: []string{"srcPort", "dstPort", "checksum"}, Written: []string{"srcPort", "dstPort", "checksum"},
			Checksum: "checksum is updated by what changed (RFC 1624)",
		},
		"kv_client": {Name: "query", Bytes: 32, Written: []string{"text"}},
	} {
		r, err := Make(t.Context(), pack(t, "../p4/testdata/"+lambda), Options{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Headers, func(h Header) bool { return h.Name == want.Name })
		if i < 0 || fmt.Sprint(r.Headers[i]) != fmt.Sprint(want) {
			t.Errorf("%s: headers %+v, want %+v", lambda, r.Headers, want)
		}
		var b strings.Builder
		if err := r.Text(&b); err != nil || !strings.Contains(b.String(), "written where changed") {
			t.Errorf("%v, it is not in the text:\n%s", err, b.String())
		}
	}
}

// A local variable has its author's name and line, also if it is passed to a function that is inlined.
func TestLocalObjectsHaveNames(t *testing.T) {
	r, err := Make(t.Context(), lambda(t, "#include \"lambda.h\"\n"+
		"int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n\tuint8_t table[300];\n"+
		"\tuint32_t n = lambda_read(headers, table, 200);\n\n\treturn lambda_write(headers, table + n % 200, 1);\n}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Objects, func(o Object) bool { return o.Name == "table" })
	if i < 0 || r.Objects[i].Size != 300 || r.Objects[i].File != "probe.c" || r.Objects[i].Line != 4 {
		t.Errorf("%+v", r.Objects)
	}
}

// A global variable lasts over requests, also if its address is passed on: it is not taken for stack.
func TestSharedObjects(t *testing.T) {
	r, err := Make(t.Context(), lambda(t, "#include \"lambda.h\"\nstatic uint32_t counts[16];\n"+
		"int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n\tuint32_t i = match_data->method & 15;\n\n"+
		"\tcounts[i]++;\n\treturn lambda_write(headers, &counts[i], 4);\n}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Objects, func(o Object) bool { return o.Name == "counts" })
	if i < 0 || r.Objects[i].Pattern != target.Written || !strings.Contains(r.Objects[i].Why, "lasts over requests") {
		t.Errorf("%+v", r.Objects)
	}
	for model, placements := range r.Placements {
		if memory := memoryOf(placements, "counts"); memory == "LM" || memory == "stack" || memory == "-" {
			t.Errorf("%s has it in %s", model, memory)
		}
	}
}

// Floating point is charged by its longest path, and estimated by its usual one. Integers are estimated as they are charged.
func TestEstimates(t *testing.T) {
	const unit = 0.2 // ns
	for name, tc := range map[string]struct {
		body      string
		low, high float64
	}{
		"integers": {"x = x * 3 + i;", 0.99, 1.01},
		"double":   {"d = d * 0.5 + i;", 0.33, 0.6},
	} {
		r, err := Make(t.Context(), lambda(t, "#include \"lambda.h\"\nint probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n"+
			"\tuint64_t x = match_data->method, n = match_data->window;\n\tdouble d = x;\n\n\tfor (uint32_t i = 0; i < n; i++) {\n\t\tlambda_opaque(x);\n\t\t"+
			tc.body+"\n\t}\n\tx += (uint64_t)d;\n\treturn lambda_write(headers, &x, 8);\n}\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		most := slices.MaxFunc(r.Loops, func(a, b Loop) int { return cmp.Compare(a.Cost, b.Cost) })
		if share := most.EstimatedNs / (unit * float64(most.Cost)); share < tc.low || share > tc.high {
			t.Errorf("%s: charged %d, estimated %.1f ns: %.2f of it", name, most.Cost, most.EstimatedNs, share)
		}
	}
}

// Each update of a shared variable is in the report, with its line and what became of it.
func TestReportOfSharing(t *testing.T) {
	r, err := Make(t.Context(), lambda(t, "#include \"lambda.h\"\nstatic uint64_t hits;\nstatic uint8_t few;\n"+
		"int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n\thits++;\n\tfew++;\n"+
		"\treturn lambda_write(headers, &hits, few ? 8 : 4);\n}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(out.String())
	text := strings.Join(lines, " ")
	for _, want := range []string{"probe.c:6 hits changes by an atomic operation", "probe.c:7 few may lose changes: atomic operations are on 32 or 64 bits"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// The report says what each hint came to, on this processor and on others.
func TestReportOfHints(t *testing.T) {
	r, err := Make(t.Context(), lambda(t, "#include \"lambda.h\"\n#include <pif/memory.h>\n"+
		"static __read_mostly uint32_t limit = 9, table[16] __read_mostly;\nLAMBDA_KEPT __read_mostly uint32_t kept;\n"+
		"static __hot uint64_t total;\nstatic __ctm uint32_t near[64];\n"+
		"static const __read_mostly uint32_t primes[] = { 2, 3, 5, 7 };\n"+
		"int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n\tuint32_t i = match_data->method & 15, n = 0;\n\n"+
		"\tif (match_data->window == 7)\n\t\tlimit = kept = i;\n\tif (i < limit)\n\t\tnear[i]++;\n\ttotal += i + primes[i & 3];\n"+
		"\tfor (uint32_t k = 0; k < i; k++)\n\t\tn += table[k];\n\ttable[i] = n;\n"+
		"\treturn lambda_write(headers, &table[i], 4);\n}\n"), Options{Verify: os.Geteuid() == 0})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ why, memory string }{
		"limit":  {"__read_mostly: in a map of its own", "CLS"},
		"table":  {"not apart, as __read_mostly asks", "CLS"},
		"kept":   {"not apart, as __read_mostly asks", "CLS"},
		"primes": {"nothing writes to it", "LM"},
		"total":  {"__hot: no memory that requests share is nearer", "CTM"},
		"near":   {"__ctm is for another processor", "CTM"},
	} {
		i := slices.IndexFunc(r.Objects, func(o Object) bool { return o.Name == name })
		if i < 0 || r.Objects[i].Hint == "" || !strings.Contains(r.Objects[i].Why, want.why) {
			t.Errorf("%s: no %q in %+v", name, want.why, r.Objects)
			continue
		}
		if memory := memoryOf(r.Placements["agilio-cx"], name); memory != want.memory {
			t.Errorf("%s would be in %s on agilio-cx, want %s", name, memory, want.memory)
		}
	}
	var out bytes.Buffer
	if err := r.Text(&out); err != nil || !strings.Contains(out.String(), "asked for with __ctm") {
		t.Errorf("%v, no word of the hint elsewhere:\n%s", err, &out)
	}
}

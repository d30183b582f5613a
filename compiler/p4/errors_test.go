package p4_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/p4"
)

// files are a program's, by name.
type files map[string]string

func (f files) open(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

// frame is a small program, to which tests add the lines to test.
func frame(more string) string {
	return `header_type h_t { fields { a : 8; b : 16; c : 48; } }
header_type m_t { fields { x : 32; } }
header h_t h;
metadata m_t m;
primitive_action run();
parser start { extract(h); return ingress; }
action go_on(port) { modify_field(standard_metadata.egress_spec, port); }
action nothing() { }
table t { reads { h.b : exact; } actions { go_on; nothing; } }
control ingress { apply(t); }
` + more
}

const frameLines = 10

func wantErrors(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []string
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			got = append(got, e.Error())
		}
	} else if err != nil {
		got = []string{err.Error()}
	}
	if len(got) != len(want) {
		t.Fatalf("got %d errors, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

func TestFrame(t *testing.T) {
	if _, err := p4.Parse("a.p4", files{"a.p4": frame("")}.open); err != nil {
		t.Fatal(err)
	}
}

// at is a message at a place in the lines after the frame.
func at(line, column int, message string) string {
	return fmt.Sprintf("a.p4:%d:%d: error: %s", frameLines+line, column, message)
}

func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"several in one run": {
			"table u {\n\treads { h.b exact; }\n\tactions { nothing }\n}\naction broken( { }\nmetadata m_t n\ncontrol egress { if valid(h) { } apply(t) }\n",
			[]string{
				at(2, 14, `expected ":", found "exact"`), at(3, 20, `expected ";", found "}"`),
				at(5, 16, `expected a parameter's name, found "{"`), at(7, 1, `expected ";", found "control"`),
				at(7, 21, `expected "(", found "valid"`), at(7, 43, `expected ";" or "{", found "}"`),
			},
		},
		"statements": {
			"control egress {\n\tif valid(h) { apply(t); }\n\tapply t;\n\tapply(t)\n\tapply(t);\n}\n",
			[]string{at(2, 5, `expected "(", found "valid"`), at(3, 8, `expected "(", found "t"`), at(5, 2, `expected ";" or "{", found "apply"`)},
		},
		"blocks behind an apply": {
			"control egress {\n\tapply(t) { miss { } default { } }\n\tapply(t) { hit { } hit { } }\n\tapply(t) { go_on { } miss { } }\n}\n",
			[]string{at(2, 22, `"default" beside other blocks`), at(3, 21, `"hit" stands twice`), at(4, 23, `"miss" beside other blocks`)},
		},
		"a comment that does not end": {"/* all this", []string{at(1, 1, "comment does not end")}},
		"a byte of nothing":           {"$\n", []string{at(1, 1, "byte 0x24 begins no token")}},
		"numbers":                     {"table u { size : 0xfg; }\ntable v { size : 2'9; }\n", []string{at(1, 18, `"0xfg" is not a number`), at(2, 18, "9 does not fit into 2 bits")}},
		"the end":                     {"control egress { apply(t); ", []string{at(1, 27, `expected "}", found end of file`)}},
		"no declaration":              {"x = 1;\n", []string{at(1, 1, `expected a declaration, found "x"`)}},
		"what is left out":            {"counter c { type : packets; }\nregister r { width : 8; }\n", []string{at(1, 1, "counter is not supported: count in"), at(2, 1, "register is not supported")}},
		"stacks":                      {"header h_t s[4];\n", []string{at(1, 13, "header stacks are not supported")}},
		"deep":                        {"control egress { " + strings.Repeat("if (valid(h)) { ", 200) + "\n", []string{at(1, 2054, "nested more than 128 deep"), at(1, 3217, `expected "}", found end of file`)}},
		"deep expressions":            {"action d() { modify_field(m.x, " + strings.Repeat("(", 300) + "\n", []string{at(1, 159, "nested more than 128 deep"), at(1, 332, `expected "}", found end of file`)}},
		"macros of macros":            {"#define A B B\n#define B A A\ntable A { }\n", []string{at(3, 7, `expected "{", found "A"`)}},
		"an include in itself":        {"#include \"a.p4\"\n", []string{at(1, 10, "#include is nested more than 16 deep")}},
		"an include of others' files": {"#include \"../../etc/passwd\"\n#include </etc/passwd>\n", []string{at(1, 10, `cannot include "../../etc/passwd"`), at(2, 10, `cannot include "/etc/passwd"`)}},
		"directives":                  {"#if\n#endif\n#endif\n#else\n#warning x\n#define\n#define F(x) x\n#ifdef X\n", []string{at(1, 2, "this #if is not understood"), at(3, 2, "#endif without #if"), at(4, 2, "#else without #if"), at(5, 2, `unknown directive "#warning"`), at(6, 2, "#define: expected a name"), at(7, 10, "macros with parameters"), at(9, 1, "file ends within #if")}},

		"names": {
			"header z_t z;\naction a() { modify_field(h.z, 1); modify_field(q.a, 1); runn(); add_header(m); }\ntable u { reads { h.bb : exact; } actions { goon; } }\ncontrol egress { apply(tt); other(); }\n",
			[]string{
				at(1, 8, `header type "z_t" is not declared: did you mean "h_t"?`), at(2, 29, `field "z" is not declared: did you mean "a"?`),
				at(2, 49, `header "q" is not declared: did you mean "h"?`), at(2, 58, `action "runn" is not declared: did you mean "run"?`),
				at(2, 77, `"m" is metadata, which no packet carries`), at(3, 21, `field "bb" is not declared: did you mean "b"?`),
				at(3, 45, `action "goon" is not declared: did you mean "go_on"?`), at(4, 24, `table "tt" is not declared: did you mean "t"?`),
				at(4, 29, `control "other" is not declared`),
			},
		},
		"twice":                  {"table t { }\ncontrol ingress { }\nheader h_t h;\n", []string{at(1, 7, `table "t" is declared twice`), at(2, 9, `control "ingress" is declared twice`), at(3, 12, `header "h" is declared twice`)}},
		"a macro that is none":   {"control egress { if (h.b == PORT) { apply(t); } }\n", []string{at(1, 29, `"PORT" is not declared: expected a number, a parameter or HEADER.FIELD; a macro needs a #define`)}},
		"a word of C":            {"header_type i_t { fields { short : 8; } }\nheader i_t i;\n", []string{at(1, 28, `"short" is a word of C`)}},
		"half a byte":            {"header_type i_t { fields { f : 12; } }\nheader i_t i;\n", []string{at(2, 12, `header "i" has 12 bits`)}},
		"no condition":           {"control egress { if (h.b) { apply(t); } }\n", []string{at(1, 22, "expected a condition")}},
		"arguments":              {"action a() { modify_field(h.a); no_op(1); go_on(); run(1); add_header(h.a); modify_field(5, 1); }\n", []string{at(1, 14, "modify_field takes (field, value)"), at(1, 33, "no_op takes no values"), at(1, 43, `action "go_on" takes 1 values, found 0`), at(1, 52, `primitive action "run" takes no values`), at(1, 71, "expected a header"), at(1, 90, "expected a field")}},
		"recursion":              {"action a() { b(); }\naction b() { a(); }\n", []string{at(2, 14, `action "a" leads to itself`)}},
		"loops in the parser":    {"parser p { extract(h); return q; }\nparser q { return p; }\nparser r { return select (h.a) { 300 : ingress; } }\n", []string{at(3, 8, `the select of parser state "r" has no default`), at(3, 34, "300 does not fit into the select's 8 bits")}},
		"a clone at ingress":     {"action k() { clone_egress_pkt_to_ingress(1); }\ntable kt { actions { k; } }\ncontrol other { apply(kt); }\n", nil},
		"checksums":              {"field_list l { 0; h.a; }\nfield_list_calculation c { input { l; k; } algorithm : crc16; output_width : 16; }\ncalculated_field h.b { update c; }\ncalculated_field h.a { verify c; }\n", []string{at(3, 18, "h.b: a checksum needs a field of 16 bits"), at(4, 18, "h.a: a checksum needs a field of 16 bits")}},
		"wide values":            {"header_type w_t { fields { f : 160; } }\nheader w_t w;\naction a() { add_to_field(w.f, 1); }\n", []string{at(3, 14, "w.f has 160 bits")}},
		"a state without return": {"parser p { extract(h); }\n", []string{at(1, 8, `parser state "p" does not say where to go`)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p4.Parse("a.p4", files{"a.p4": frame(test.text)}.open)
			wantErrors(t, err, test.want...)
		})
	}
}

// Missing declarations are reported as well.
func TestErrorsOfEmptyPrograms(t *testing.T) {
	_, err := p4.Parse("a.p4", files{"a.p4": "\n"}.open)
	wantErrors(t, err, `a.p4:1:1: error: there is no "parser start"`)
	_, err = p4.Parse("b.p4", files{}.open)
	wantErrors(t, err, `b.p4:1:1: error: cannot include "b.p4"`)
}

// Programs that grow by expansion stay within bounds.
func TestErrorsOfGrowingPrograms(t *testing.T) {
	var b strings.Builder
	for i := range 14 {
		fmt.Fprintf(&b, "action a%d() { a%d(); a%d(); a%d(); a%d(); }\n", i, i+1, i+1, i+1, i+1)
	}
	b.WriteString("action a14() { run(); }\n")
	_, err := p4.Parse("a.p4", files{"a.p4": frame(b.String())}.open)
	if err == nil || !strings.Contains(err.Error(), "the program grows to more than") {
		t.Errorf("actions: got %v", err)
	}
	b.Reset()
	b.WriteString("#define M0 1 1 1 1 1 1 1 1\n")
	for i := range 14 {
		fmt.Fprintf(&b, "#define M%d M%d M%d M%d M%d\n", i+1, i, i, i, i)
	}
	_, err = p4.Parse("a.p4", files{"a.p4": frame(b.String() + "M14\n")}.open)
	if err == nil || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("macros: got %v", err)
	}
}

func TestPreprocessor(t *testing.T) {
	fs := files{
		"a.p4":            "#include \"inc/b.p4\"\n#ifdef YES\n#define WIDTH 0x8 // bits\n#else\n#error never seen\n#endif\n#ifndef YES\n}{\n#endif\n#if defined(YES)\n" + frame("") + "#endif\n@pragma whatever { {\n",
		"inc/b.p4":        "#include \"deeper/c.p4\"\n#include <inc/d.p4>\nheader_type n_t { fields { n : NINE; } }",
		"inc/deeper/c.p4": "#define YES\n#define NINE EIGHT_AND \\\n\n#define EIGHT_AND 9\n",
		"inc/d.p4":        "#undef NO\n",
	}
	p, err := p4.Parse("a.p4", fs.open)
	if err != nil {
		t.Fatal(err)
	}
	if p.Header("h") == nil {
		t.Error("the program is not there")
	}
}

func TestRuleErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"not JSON":        {"{\n  \"tables\": {,}\n}", []string{"r:2:14: error: not JSON: "}},
		"too short":       {"{\"tables\": {", []string{"r:1:13: error: not JSON: "}},
		"too long":        {"{} {}", []string{"r:1:4: error: expected end of file"}},
		"deep":            {strings.Repeat("[", 100), []string{"r:1:18: error: nested more than 16 deep"}},
		"another key":     {`{"registers": {}}`, []string{`r:1:2: error: unknown key "registers" in a rules file: expected "tables"`}},
		"another kind":    {`{"tables": []}`, []string{`r:1:12: error: expected an object as "tables", found an array`}},
		"another table":   {`{"tables": {"u": {}}}`, []string{`r:1:13: error: the program has no table "u": expected "t"`}},
		"a table twice":   {`{"tables": {"t": {}, "t": {}}}`, []string{`r:1:22: error: "t" stands twice`}},
		"another action":  {`{"tables": {"t": {"default_rule": {"action": {"type": "run"}}}}}`, []string{`r:1:55: error: table "t" has no action "run": expected "go_on" or "nothing"`}},
		"no action":       {`{"tables": {"t": {"default_rule": {"name": "x"}}}}`, []string{`r:1:35: error: the rule has no "action"`}},
		"no data":         {`{"tables": {"t": {"default_rule": {"action": {"type": "go_on"}}}}}`, []string{`r:1:46: error: action "go_on" needs a value for "port"`}},
		"a port beyond":   {`{"tables": {"t": {"default_rule": {"action": {"type": "go_on", "data": {"port": {"value": "4000"}}}}}}}`, []string{`r:1:91: error: "4000" is not a port`}},
		"another wire":    {`{"tables": {"t": {"default_rule": {"action": {"type": "go_on", "data": {"port": {"value": "p1"}}}}}}}`, []string{`r:1:91: error: "p1" is not a port`}},
		"a big port":      {`{"tables": {"t": {"default_rule": {"action": {"type": "go_on", "data": {"port": {"value": "0x10000000000000300"}}}}}}}`, []string{`r:1:91: error: "0x10000000000000300" is not a port`}},
		"other data":      {`{"tables": {"t": {"default_rule": {"action": {"type": "nothing", "data": {"x": {"value": "1"}}}}}}}`, []string{`r:1:75: error: unknown key "x" in the data of action nothing`}},
		"no match":        {`{"tables": {"t": {"rules": [{"action": {"type": "nothing"}}]}}}`, []string{`r:1:29: error: the rule has no "match"`}},
		"another match":   {`{"tables": {"t": {"rules": [{"match": {"h.c": {"value": "1"}}, "action": {"type": "nothing"}}]}}}`, []string{`r:1:39: error: the match has no value for "h.b"`, `r:1:40: error: unknown key "h.c" in a match of table t: expected "h.b"`}},
		"a wide value":    {`{"tables": {"t": {"rules": [{"match": {"h.b": {"value": "0x10000"}}, "action": {"type": "nothing"}}]}}}`, []string{`r:1:57: error: "0x10000" does not fit into 16 bits`}},
		"a strange value": {`{"tables": {"t": {"rules": [{"match": {"h.b": {"value": "x1"}}, "action": {"type": "nothing"}}]}}}`, []string{`r:1:57: error: "x1" is not a value`}},
		"a mask on exact": {`{"tables": {"t": {"rules": [{"match": {"h.b": {"value": "1", "mask": "1"}}, "action": {"type": "nothing"}}]}}}`, []string{`r:1:62: error: unknown key "mask" in a value of h.b`}},
		"equal rules": {
			`{"tables": {"t": {"rules": [{"name": "a", "match": {"h.b": {"value": "16"}}, "action": {"type": "nothing"}},
{"name": "b", "match": {"h.b": {"value": "0x10"}}, "action": {"type": "nothing"}}]}}}`,
			[]string{`r:1:28: error: rules "a" and "b" of table "t" match the same packets`},
		},
		"many rules": {
			`{"tables": {"t": {"rules": [` + strings.Repeat("1, ", 2048) + `1]}}}`,
			[]string{`r:1:28: error: table "t" has 2049 rules, and may have 2048`},
		},
		"several": {
			"{\"tables\": {\n\"t\": {\"rules\": [\n{\"match\": 1, \"action\": {\"type\": \"nothing\"}},\n{\"match\": {\"h.b\": {\"value\": \"1\"}}, \"action\": 2}]}}}",
			[]string{"r:3:11: error: expected an object as a match of table t", "r:4:46: error: expected an object as an action"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := p4.Parse("a.p4", files{"a.p4": frame("")}.open)
			if err != nil {
				t.Fatal(err)
			}
			unknown, err := p4.ReadRules("r", []byte(test.text), p)
			if err == nil {
				err = unknown
			}
			wantErrors(t, err, test.want...)
		})
	}
}

// Clones are made only where packets leave.
func TestCloneAtIngress(t *testing.T) {
	text := strings.Replace(frame("action k() { clone_egress_pkt_to_ingress(1); }\ntable kt { actions { k; } }\n"), "apply(t);", "apply(kt);", 1)
	_, err := p4.Parse("a.p4", files{"a.p4": text}.open)
	wantErrors(t, err, at(1, 8, `action "k" clones at egress, but is used in control ingress`))
	var first *p4.Error
	if !errors.As(err, &first) || first.Line != frameLines+1 {
		t.Errorf("got %#v", first)
	}
}

// The fields that clones keep have to fit into the record that goes with a clone; each field counts once.
func TestClonesKeepTooMuch(t *testing.T) {
	for words, want := range map[int][]string{60: nil, 61: {at(5, 8, "clones keep more than 60 words of 32 bits of metadata")}} {
		text := fmt.Sprintf("header_type w_t { fields { f : %d; } }\nmetadata w_t w;\nfield_list l { w; }\nfield_list m { w.f; }\n"+
			"action k() { clone_egress_pkt_to_ingress(1, l); clone_egress_pkt_to_ingress(1, m); }\ntable kt { actions { k; } }\ncontrol egress { apply(kt); }\n", 32*words)
		_, err := p4.Parse("a.p4", files{"a.p4": frame(text)}.open)
		wantErrors(t, err, want...)
	}
}

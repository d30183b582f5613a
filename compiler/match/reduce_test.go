package match_test

import (
	"fmt"
	"io/fs"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/match"
	"github.com/lambdanic/lambdanic/compiler/p4"
)

// machine interprets a program's ingress with all its tables.
type machine struct {
	values map[string]*big.Int // by field
	log    []string            // the primitives that ran
}

func name(f *match.Field) string { return f.Header.Name + "." + f.Name }

func (m *machine) get(f *match.Field) *big.Int {
	if v := m.values[name(f)]; v != nil {
		return v
	}
	if f.Init != nil {
		return f.Init
	}
	return new(big.Int)
}

func (m *machine) eval(e match.Expr, args []match.Expr) *big.Int {
	switch e := e.(type) {
	case match.Const:
		return e.Value
	case match.Ref:
		return m.get(e.Field)
	case match.Arg:
		return m.eval(args[e.Index], nil)
	case match.IsValid:
		return big.NewInt(1)
	case match.Unary:
		return truth(e.Op == "!" && m.eval(e.X, args).Sign() == 0)
	case match.Binary:
		x, y := m.eval(e.X, args), m.eval(e.Y, args)
		switch e.Op {
		case "==":
			return truth(x.Cmp(y) == 0)
		case "&&":
			return truth(x.Sign() != 0 && y.Sign() != 0)
		case "||":
			return truth(x.Sign() != 0 || y.Sign() != 0)
		case "&":
			return new(big.Int).And(x, y)
		case "+":
			return new(big.Int).Add(x, y)
		}
	}
	panic(fmt.Sprintf("no meaning for %#v", e))
}

func truth(b bool) *big.Int {
	if b {
		return big.NewInt(1)
	}
	return new(big.Int)
}

func (m *machine) run(list []match.Stmt, args []match.Expr) {
	for _, s := range list {
		switch s := s.(type) {
		case match.Assign:
			v := m.eval(s.From, args)
			mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(s.To.Width)), big.NewInt(1))
			m.values[name(s.To)] = new(big.Int).And(v, mask)
		case match.Primitive:
			m.log = append(m.log, s.Name)
		case match.If:
			if m.eval(s.Cond, args).Sign() != 0 {
				m.run(s.Then, args)
			} else {
				m.run(s.Else, args)
			}
		case match.Apply:
			m.apply(s)
		}
	}
}

func (m *machine) apply(a match.Apply) {
	call, hit := a.Table.Default, false
	for _, rule := range a.Table.Rules {
		fits := true
		for i, k := range a.Table.Keys {
			v, want := m.eval(k.Expr, nil), rule.Values[i]
			if want.Mask != nil {
				fits = fits && new(big.Int).And(v, want.Mask).Cmp(new(big.Int).And(want.Value, want.Mask)) == 0
			} else {
				fits = fits && v.Cmp(want.Value) == 0
			}
		}
		if fits {
			call, hit = &rule.Call, true
			break
		}
	}
	if call != nil {
		m.run(call.Action.Body, call.Args)
	}
	if hit {
		m.run(a.Hit, nil)
	} else {
		m.run(a.Miss, nil)
	}
	if call == nil {
		return
	}
	if after, ok := a.After[call.Action]; ok {
		m.run(after, nil)
	} else {
		m.run(a.Otherwise, nil)
	}
}

// randomProgram writes a program with tables that resemble each other, and rules for them.
func randomProgram(rng *rand.Rand) (program, rules string) {
	var text, cfg strings.Builder
	text.WriteString(`header_type h_t { fields { a : 8; b : 8; c : 8; } }
metadata h_t m;
header h_t h;
parser start { extract(h); return ingress; }
primitive_action one();
primitive_action two();
action set(v) { modify_field(h.a, v); modify_field(m.a, h.b); modify_field(m.c, v); }
action move(v, w) { modify_field(h.b, m.a); add_to_field(m.b, v); modify_field(h.c, w); one(); }
action send(p) { modify_field(standard_metadata.egress_spec, p); two(); }
action nothing() { }
`)
	fields := []string{"h.a", "h.b", "m.a", "m.b", "standard_metadata.ingress_port"}
	const tables = 6
	cfg.WriteString(`{"tables": {`)
	var keys []string
	for i := range tables {
		if i%2 == 0 { // the next one has the same keys
			keys = []string{fields[rng.IntN(len(fields))]}
		}
		fmt.Fprintf(&text, "table t%d { reads { %s : ternary; } actions { set; move; send; nothing; } }\n", i, keys[0])
		fmt.Fprintf(&cfg, `"t%d": {"rules": [`, i)
		for j := range 1 + rng.IntN(2) {
			if j > 0 {
				cfg.WriteString(", ")
			}
			fmt.Fprintf(&cfg, `{"match": {"%s": {"value": "%d", "mask": "%d"}}, "action": %s}`, keys[0], j, 3+4*j, randomAction(rng))
		}
		cfg.WriteString(`]`)
		if rng.IntN(2) == 0 {
			fmt.Fprintf(&cfg, `, "default_rule": {"action": %s}`, randomAction(rng))
		}
		cfg.WriteString("}" + map[bool]string{true: ", "}[i < tables-1])
	}
	cfg.WriteString("}}")
	// Two alternative tables that differ only in their data: they are merged behind the decision, whatever the other tables are.
	text.WriteString("table left { actions { move; } default_action : move(1, 2); }\ntable right { actions { move; } default_action : move(3, 2); }\n")
	text.WriteString("control ingress {\n" + randomControl(rng, 3, tables) + "if (h.a == 1) { apply(left); } else { apply(right); }\n}\n")
	return text.String(), cfg.String()
}

func randomAction(rng *rand.Rand) string {
	return []string{
		fmt.Sprintf(`{"type": "set", "data": {"v": {"value": "%d"}}}`, rng.IntN(4)),
		fmt.Sprintf(`{"type": "move", "data": {"v": {"value": "%d"}, "w": {"value": "%d"}}}`, rng.IntN(4), rng.IntN(4)),
		fmt.Sprintf(`{"type": "send", "data": {"p": {"value": "v0.%d"}}}`, rng.IntN(2)),
		`{"type": "nothing"}`,
	}[min(rng.IntN(6), 3)]
}

func randomControl(rng *rand.Rand, depth, tables int) string {
	var b strings.Builder
	for range 1 + rng.IntN(3) {
		switch kind := rng.IntN(4); {
		case kind == 0 && depth > 0:
			fmt.Fprintf(&b, "if (%s == %d) {\n%s} else {\n%s}\n", []string{"h.a", "h.b", "m.b"}[rng.IntN(3)], rng.IntN(4),
				randomControl(rng, depth-1, tables), randomControl(rng, depth-1, tables))
		case kind == 1 && depth > 0:
			fmt.Fprintf(&b, "apply(t%d) { hit { %s } miss { %s } }\n", rng.IntN(tables), randomControl(rng, 0, tables), randomControl(rng, 0, tables))
		case kind == 2 && depth > 0:
			fmt.Fprintf(&b, "apply(t%d) { set { %s } default { %s } }\n", rng.IntN(tables), randomControl(rng, 0, tables), randomControl(rng, 0, tables))
		default:
			fmt.Fprintf(&b, "apply(t%d);\n", rng.IntN(tables))
		}
	}
	return b.String()
}

// Tables are merged whatever data their actions have, and whatever the program's own names are.
func TestReduceMergesAnyValues(t *testing.T) {
	const text = `header_type h_t { fields { a : 8; b : 160; } }
header h_t h;
metadata h_t merged;
parser start { extract(h); return ingress; }
action act(x) { modify_field(h.a, x); modify_field(h.b, x); modify_field(merged.a, x); }
table one { actions { act; } default_action : act(-1); }
table two { actions { act; } default_action : act(h.b); }
table three { actions { act; } default_action : act(0x123456789abcdef0123456789abcdef); }
control ingress { if (h.a == 1) { apply(one); } else { if (h.a == 2) { apply(two); } else { apply(three); } } if (merged.a == 1) { apply(one); } }
`
	p, err := p4.Parse("a", func(string) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatal(err)
	}
	match.Reduce(p, match.Uses{})
	h := p.Header("merged_")
	if h == nil || h.Field("apply_one") == nil || h.Field("apply_one_x_0") == nil || h.Field("apply_one_x_0").Width != 160 {
		t.Errorf("the tables were not merged:\n%v", p)
	}
	if _, err := match.Emit(p, match.Lambda{}); err != nil {
		t.Error(err)
	}
}

// A reduced program does the same with every packet as the original.
func TestReduceChangesNothing(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		text, rules := randomProgram(rng)
		parse := func() *match.Program {
			p, err := p4.Parse("a", func(name string) ([]byte, error) {
				if name != "a" {
					return nil, fs.ErrNotExist
				}
				return []byte(text), nil
			})
			if err == nil {
				_, err = p4.ReadRules("rules", []byte(rules), p)
			}
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, text, rules)
			}
			return p
		}
		before, after := parse(), parse()
		match.Reduce(after, match.Uses{})
		if h := after.Header("merged"); h == nil || h.Field("apply_left") == nil && h.Field("apply_right") == nil {
			t.Fatalf("seed %d: the alternatives are not merged:\n%s\n%v", seed, text, after)
		}
		for range 50 {
			was, is := machine{values: map[string]*big.Int{}}, machine{values: map[string]*big.Int{}}
			for _, f := range []string{"h.a", "h.b", "h.c"} {
				v := big.NewInt(int64(rng.IntN(5)))
				was.values[f], is.values[f] = v, v
			}
			was.run(before.Ingress, nil)
			is.run(after.Ingress, nil)
			for _, f := range []string{"h.a", "h.b", "h.c", "standard_metadata.egress_spec"} {
				if a, b := fmt.Sprint(was.values[f]), fmt.Sprint(is.values[f]); a != b {
					t.Fatalf("seed %d: %s is %s, want %s\n%s\n%s\n%v", seed, f, b, a, text, rules, after)
				}
			}
			if a, b := fmt.Sprint(was.log), fmt.Sprint(is.log); a != b {
				t.Fatalf("seed %d: primitives %s, want %s\n%s\n%s\n%v", seed, b, a, text, rules, after)
			}
		}
	}
}

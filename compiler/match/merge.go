package match

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// mergeTables merges tables with the same purpose: equal keys, rules and actions. If the data of their rules differ, the merged table gets
// parameters. If the lambdas that apply it are alternatives, it is applied once after them, with its parameters in metadata
// (λ-NIC, section 6.4).
func (r *reducer) mergeTables() {
	groups := map[string][]*Table{}
	for _, t := range r.applied() {
		key := t.purpose()
		groups[key] = append(groups[key], t)
	}
	one := map[*Table]Apply{} // what replaces each table's application
	for _, t := range r.applied() {
		same := groups[t.purpose()]
		if len(same) > 1 && same[0] == t {
			merge(same, one)
		}
	}
	r.controls(func(list []Stmt) []Stmt { return redirect(list, one) })
	r.Tables = r.applied()
	r.controls(r.applyBehind)
}

// purpose is the same text for tables that differ only in their rules' data.
func (t *Table) purpose() string {
	var b strings.Builder
	for _, k := range t.Keys {
		fmt.Fprintf(&b, "%d", k.Kind)
		if k.Header != nil {
			b.WriteString(k.Header.Name)
		}
		b.WriteString(exprText(k.Expr) + ";")
	}
	call := func(c *Call) {
		if c != nil {
			fmt.Fprintf(&b, "(%s)%d;", text(c.Action.Body), len(c.Args))
		}
	}
	for i := range t.Rules {
		fmt.Fprintf(&b, "%v", t.Rules[i].Values)
		call(&t.Rules[i].Call)
	}
	b.WriteString("else")
	call(t.Default)
	return b.String()
}

// calls are the calls of all rules, the default's last.
func (t *Table) calls() []*Call {
	var list []*Call
	for i := range t.Rules {
		list = append(list, &t.Rules[i].Call)
	}
	if t.Default != nil {
		list = append(list, t.Default)
	}
	return list
}

func (t *Table) clone() *Table {
	out := *t
	out.Rules = slices.Clone(t.Rules)
	if t.Default != nil {
		call := *t.Default
		out.Default = &call
	}
	for _, call := range out.calls() {
		call.Args = slices.Clone(call.Args)
	}
	return &out
}

// merge makes one table that replaces several, and notes the parameters for each. The original tables stay where statements depend on their
// actions.
func merge(tables []*Table, one map[*Table]Apply) {
	first := tables[0].clone()
	for _, t := range tables {
		one[t] = Apply{Table: first}
	}
	for i, call := range first.calls() {
		for j := range call.Args {
			values := make([]Expr, len(tables))
			equal := true
			for k, t := range tables {
				values[k] = t.calls()[i].Args[j]
				equal = equal && exprText(values[k]) == exprText(values[0])
			}
			if equal {
				continue
			}
			p := Param{Name: fmt.Sprintf("%s_%d", call.Action.Params[j], len(first.Params)), Width: 1}
			for k, t := range tables {
				a := one[t]
				a.Args = append(a.Args, values[k])
				one[t] = a
				p.Width = max(p.Width, widthOf(values[k]))
			}
			call.Args[j] = Arg{len(first.Params), p.Name}
			first.Params = append(first.Params, p)
		}
	}
}

// widthOf is how many bits the value has.
func widthOf(e Expr) int {
	switch e := e.(type) {
	case Const:
		if e.Value.Sign() >= 0 {
			return e.Value.BitLen()
		}
	case Ref:
		return e.Field.Width
	}
	return 64
}

func redirect(list []Stmt, one map[*Table]Apply) []Stmt {
	out := make([]Stmt, 0, len(list))
	for _, s := range list {
		switch x := s.(type) {
		case If:
			x.Then, x.Else = redirect(x.Then, one), redirect(x.Else, one)
			s = x
		case Apply:
			x.Hit, x.Miss, x.Otherwise = redirect(x.Hit, one), redirect(x.Miss, one), redirect(x.Otherwise, one)
			if to, ok := one[x.Table]; ok && len(x.After) == 0 {
				x.Table, x.Args = to.Table, to.Args
			}
			s = x
		}
		out = append(out, s)
	}
	return out
}

// applyBehind moves a table that several branches of a decision apply last behind the decision.
func (r *reducer) applyBehind(list []Stmt) []Stmt {
	var out []Stmt
	for _, s := range list {
		x, ok := s.(If)
		if !ok {
			out = append(out, s)
			continue
		}
		x.Then, x.Else = r.applyBehind(x.Then), r.applyBehind(x.Else)
		for {
			t := mostApplied(x)
			if t == nil {
				break
			}
			moved := r.behind(&x, t)
			out = append(out, x)
			x = moved
		}
		out = append(out, x)
	}
	return out
}

// worthMoving is the least number of statements for which it pays to apply a table once, guarded by a flag.
const worthMoving = 3

// mostApplied is a table that at least two branches apply last.
func mostApplied(x If) *Table {
	count := map[*Table]int{}
	var found *Table
	var look func([]Stmt)
	look = func(list []Stmt) {
		if len(list) == 0 {
			return
		}
		switch s := list[len(list)-1].(type) {
		case If:
			look(s.Then)
			look(s.Else)
		case Apply:
			if count[s.Table]++; count[s.Table] == 2 && s.simple() && s.Table.size() >= worthMoving && found == nil {
				found = s.Table
			}
		}
	}
	look(x.Then)
	look(x.Else)
	return found
}

// simple tells whether nothing depends on the table's result.
func (a Apply) simple() bool {
	return len(a.Hit)+len(a.Miss)+len(a.Otherwise)+len(a.After) == 0
}

// mergedMetadata holds the flags of tables that are applied behind a decision, and their parameters.
func (r *reducer) mergedMetadata() *Header {
	if r.merged == nil {
		name := "merged"
		for r.Header(name) != nil {
			name += "_"
		}
		r.merged = &Header{Name: name, Type: name, Metadata: true}
		r.Headers = append(r.Headers, r.merged)
	}
	return r.merged
}

// behind removes the table from the branches, which set metadata instead, and returns the statement to put behind them.
func (r *reducer) behind(x *If, t *Table) If {
	h := r.mergedMetadata()
	add := func(name string, width int) *Field {
		for h.Field(name) != nil {
			name += "_"
		}
		f := &Field{Header: h, Name: name, Width: width, Offset: h.Bits(), Init: new(big.Int)}
		h.Fields = append(h.Fields, f)
		return f
	}
	flag := add("apply_"+t.Name, 1) // prefixed, since a table's name could be a word of C
	args := make([]Expr, len(t.Params))
	params := make([]*Field, len(t.Params))
	for i, p := range t.Params {
		params[i] = add("apply_"+t.Name+"_"+p.Name, p.Width)
		args[i] = Ref{params[i]}
	}
	var take func([]Stmt) []Stmt
	take = func(list []Stmt) []Stmt {
		if len(list) == 0 {
			return list
		}
		out := slices.Clone(list)
		switch s := out[len(out)-1].(type) {
		case If:
			s.Then, s.Else = take(s.Then), take(s.Else)
			out[len(out)-1] = s
		case Apply:
			if s.Table != t || !s.simple() {
				break
			}
			out = append(out[:len(out)-1], Assign{flag, Num(1)})
			for i, a := range s.Args {
				out = append(out, Assign{params[i], a})
			}
		}
		return out
	}
	x.Then, x.Else = take(x.Then), take(x.Else)
	return If{Cond: Binary{"==", Ref{flag}, Num(1)}, Then: []Stmt{Apply{Table: t, Args: args}}}
}

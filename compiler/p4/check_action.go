package p4

import (
	"slices"

	"github.com/lambdanic/lambdanic/compiler/match"
)

// scope is what names may mean besides fields: an action's parameters and, in a parser state, the last extracted header.
type scope struct {
	params []string
	latest *match.Header
}

// action resolves an action, once.
func (c *checker) action(n name) *match.Action {
	if a := c.resolved[n.text]; a != nil {
		return a
	}
	decl := c.actions[n.text]
	if decl == nil {
		c.unknown(n, "action", sortedKeys(c.actions))
		return nil
	}
	if !c.enter("action", n) {
		return nil
	}
	defer c.leave()
	a := &match.Action{Name: n.text}
	for _, p := range decl.params {
		if slices.Contains(a.Params, p.text) {
			c.errors.add(p.position, "parameter %q stands twice", p.text)
		}
		a.Params = append(a.Params, p.text)
	}
	for _, k := range decl.body {
		a.Body = append(a.Body, c.call(k, scope{params: a.Params})...)
	}
	c.resolved[n.text] = a
	return a
}

// call resolves a statement of an action: a built-in action, the lambda's, or another action, which is inlined.
func (c *checker) call(k call, s scope) []match.Stmt {
	if b := builtins[k.name.text]; b != nil {
		if len(k.args) < b.min || len(k.args) > b.max {
			c.errors.add(k.name.position, "%s takes %s, found %d values", k.name.text, b.form, len(k.args))
			return nil
		}
		return b.make(c, k, s)
	}
	if c.primitives[k.name.text] {
		if len(k.args) > 0 {
			c.errors.add(k.name.position, "primitive action %q takes no values: hand them over in metadata", k.name.text)
		}
		return []match.Stmt{match.Primitive{Name: k.name.text}}
	}
	if c.actions[k.name.text] == nil {
		c.unknown(k.name, "action", slices.Concat(sortedKeys(builtins), c.out.Primitives, sortedKeys(c.actions)))
		return nil
	}
	a := c.action(k.name)
	if a == nil {
		return nil
	}
	if len(a.Params) != len(k.args) {
		c.errors.add(k.name.position, "action %q takes %d values, found %d", a.Name, len(a.Params), len(k.args))
		return nil
	}
	if !c.spend(1+len(a.Body), k.name) {
		return nil
	}
	args := make([]match.Expr, len(k.args))
	for i, e := range k.args {
		args[i] = c.expr(e, s)
	}
	return match.Substitute(a.Body, args)
}

// builtin is one of the language's own actions.
type builtin struct {
	min, max int
	form     string
	make     func(c *checker, k call, s scope) []match.Stmt
}

var builtins map[string]*builtin

func init() {
	builtins = map[string]*builtin{
		"no_op":         {0, 0, "no values", func(*checker, call, scope) []match.Stmt { return nil }},
		"drop":          {0, 0, "no values", func(*checker, call, scope) []match.Stmt { return []match.Stmt{match.Drop{}} }},
		"modify_field":  {2, 3, "(field, value) or (field, value, mask)", (*checker).modifyField},
		"set_metadata":  {2, 2, "(field, value)", (*checker).modifyField},
		"add_header":    {1, 1, "(header)", setValid(true)},
		"remove_header": {1, 1, "(header)", setValid(false)},
		"copy_header":   {2, 2, "(to, from)", (*checker).copyHeader},
		"clone_egress_pkt_to_ingress": {
			1, 2, "(session) or (session, field list)", (*checker).clone,
		},
	}
	builtins["clone_e2i"] = builtins["clone_egress_pkt_to_ingress"]
	for name, op := range map[string]string{"add_to_field": "+", "subtract_from_field": "-"} {
		builtins[name] = &builtin{2, 2, "(field, value)", func(c *checker, k call, s scope) []match.Stmt {
			return c.assign(k.args[0], binary{k.name.position, op, k.args[0], k.args[1]}, s)
		}}
	}
	for name, op := range map[string]string{
		"add": "+", "subtract": "-", "bit_and": "&", "bit_or": "|", "bit_xor": "^", "shift_left": "<<", "shift_right": ">>",
	} {
		builtins[name] = &builtin{3, 3, "(field, value, value)", func(c *checker, k call, s scope) []match.Stmt {
			return c.assign(k.args[0], binary{k.name.position, op, k.args[1], k.args[2]}, s)
		}}
	}
}

// assign sets the field that to names.
func (c *checker) assign(to expression, from expression, s scope) []match.Stmt {
	r, ok := to.(reference)
	if !ok || (r.field == nil && slices.Contains(s.params, r.text)) {
		c.errors.add(to.at(), "expected a field, as HEADER.FIELD")
		return nil
	}
	f := c.field(r)
	value := c.expr(from, s)
	if f == nil || value == nil {
		return nil
	}
	return []match.Stmt{match.Assign{To: f, From: value}}
}

func (c *checker) modifyField(k call, s scope) []match.Stmt {
	value := k.args[1]
	if len(k.args) == 3 {
		at := k.name.position
		kept := binary{at, "&", k.args[0], unary{at, "~", k.args[2]}}
		value = binary{at, "|", kept, binary{at, "&", value, k.args[2]}}
	}
	return c.assign(k.args[0], value, s)
}

// headerArg finds the header that an argument names.
func (c *checker) headerArg(e expression) *match.Header {
	r, ok := e.(reference)
	if !ok || r.field != nil {
		c.errors.add(e.at(), "expected a header")
		return nil
	}
	return c.header(r.name)
}

func setValid(valid bool) func(*checker, call, scope) []match.Stmt {
	return func(c *checker, k call, _ scope) []match.Stmt {
		h := c.headerArg(k.args[0])
		if h == nil {
			return nil
		}
		return []match.Stmt{match.SetValid{Header: h, Valid: valid}}
	}
}

// copyHeader copies validity and fields (P4_14, 9.1.1).
func (c *checker) copyHeader(k call, _ scope) []match.Stmt {
	to, from := c.headerArg(k.args[0]), c.headerArg(k.args[1])
	if to == nil || from == nil {
		return nil
	}
	if to.Type != from.Type {
		c.errors.add(k.name.position, "headers %q and %q are of different types", to.Name, from.Name)
		return nil
	}
	copies := []match.Stmt{match.SetValid{Header: to, Valid: true}}
	for i, f := range to.Fields {
		copies = append(copies, match.Assign{To: f, From: match.Ref{Field: from.Fields[i]}})
	}
	return []match.Stmt{match.If{
		Cond: match.IsValid{Header: from}, Then: copies, Else: []match.Stmt{match.SetValid{Header: to, Valid: false}},
	}}
}

// clone ignores the session, a number that the target defines: this target has only one place where clones go.
func (c *checker) clone(k call, _ scope) []match.Stmt {
	var s match.Clone
	if len(k.args) < 2 {
		return []match.Stmt{s}
	}
	r, ok := k.args[1].(reference)
	if !ok || r.field != nil || c.lists[r.text] == nil {
		c.errors.add(k.args[1].at(), "expected a field list")
		return nil
	}
	inputs, _ := c.flatten(r.name)
	for _, in := range inputs {
		if in.Field != nil && in.Field.Header.Metadata {
			s.Keep = append(s.Keep, in.Field)
		}
	}
	return []match.Stmt{s}
}

// expr resolves a value; nil if that failed.
func (c *checker) expr(e expression, s scope) match.Expr {
	switch e := e.(type) {
	case number:
		return match.Const{Value: e.value}
	case validity:
		if h := c.header(e.header); h != nil {
			return match.IsValid{Header: h}
		}
	case reference:
		return c.refExpr(e, s)
	case unary:
		if x := c.operand(e.x, s, e.position); x != nil {
			return match.Unary{Op: e.op, X: x}
		}
	case binary:
		return c.binaryExpr(e, s)
	}
	return nil
}

func (c *checker) refExpr(e reference, s scope) match.Expr {
	if e.field == nil {
		if i := slices.Index(s.params, e.text); i >= 0 {
			return match.Arg{Index: i, Name: e.text}
		}
	}
	if e.text == "latest" && e.field != nil {
		if s.latest == nil {
			c.errors.add(e.position, "\"latest\": no header was extracted in this state")
			return nil
		}
		e.text = s.latest.Name
	}
	if f := c.field(e); f != nil {
		return match.Ref{Field: f}
	}
	return nil
}

// operand is an expr that C can calculate with.
func (c *checker) operand(e expression, s scope, at position) match.Expr {
	x := c.expr(e, s)
	switch x := x.(type) {
	case match.Ref:
		if x.Field.Width > 64 {
			c.errors.add(at, "%s.%s has %d bits: values of more than 64 can be copied and compared for equality only",
				x.Field.Header.Name, x.Field.Name, x.Field.Width)
			return nil
		}
	case match.Const:
		if x.Value.BitLen() > 64 {
			c.errors.add(at, "%v has more than 64 bits", x.Value)
			return nil
		}
	}
	return x
}

func (c *checker) binaryExpr(e binary, s scope) match.Expr {
	resolve := func(e2 expression) match.Expr { return c.operand(e2, s, e.position) }
	switch e.op {
	case "==", "!=":
		resolve = func(e2 expression) match.Expr { return c.expr(e2, s) }
	case "&&", "||":
		resolve = func(e2 expression) match.Expr { return c.condition(e2, s) }
	}
	x, y := resolve(e.x), resolve(e.y)
	if x == nil || y == nil {
		return nil
	}
	return match.Binary{Op: e.op, X: x, Y: y}
}

// condition is an expr that is true or false.
func (c *checker) condition(e expression, s scope) match.Expr {
	ok := false
	switch e := e.(type) {
	case validity:
		ok = true
	case unary:
		ok = e.op == "!"
		if ok {
			if x := c.condition(e.x, s); x != nil {
				return match.Unary{Op: "!", X: x}
			}
			return nil
		}
	case binary:
		switch e.op {
		case "==", "!=", "<", ">", "<=", ">=", "&&", "||":
			ok = true
		}
	}
	if !ok {
		c.errors.add(e.at(), "expected a condition: valid(HEADER), or a comparison")
		return nil
	}
	return c.expr(e, s)
}

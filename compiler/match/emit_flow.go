package match

import (
	"fmt"
	"math/big"
	"strings"
)

// controlFunction is a control in C. It returns 0, or PIF_STOP if the packet is dropped at once.
func (e *emitter) controlFunction(name string, list []Stmt) {
	e.line("static __always_inline int pif_%s(struct pif_packet *p)", name)
	e.line("{")
	e.line("EXTRACTED_HEADERS_T *h = &p->h;")
	e.line("MATCH_DATA_T match_data = {};")
	e.line("")
	e.line("(void)h, (void)match_data;")
	e.stmts(list, "h")
	e.line("return 0;")
	e.line("}")
	e.line("")
}

func (e *emitter) stmts(list []Stmt, headers string) {
	for _, s := range list {
		e.stmt(s, headers)
	}
}

func (e *emitter) stmt(s Stmt, headers string) {
	switch s := s.(type) {
	case Assign:
		e.assign(s, headers)
	case SetValid:
		e.setValid(s, headers)
	case Primitive:
		e.line("if (%s(%s, &match_data) == PIF_PLUGIN_RETURN_DROP)", e.primitive(s.Name), headers)
		e.line("\treturn PIF_STOP;")
	case Drop:
		if f := e.standard("egress_spec"); f != nil {
			e.line("%s->standard_metadata->egress_spec = PIF_PORT_NONE;", headers)
		}
	case Clone:
		e.line("p->clone = 1;")
	case If:
		e.ifStmt(s, headers)
	}
}

func (e *emitter) ifStmt(s If, headers string) {
	e.line("if (%s) {", bare(e.expr(s.Cond, headers)))
	e.stmts(s.Then, headers)
	for len(s.Else) == 1 {
		next, ok := s.Else[0].(If)
		if !ok {
			break
		}
		e.line("} else if (%s) {", bare(e.expr(next.Cond, headers)))
		e.stmts(next.Then, headers)
		s = next
	}
	if len(s.Else) > 0 {
		e.line("} else {")
		e.stmts(s.Else, headers)
	}
	e.line("}")
}

// bare is an expression without its outer parentheses.
func bare(text string) string {
	if !strings.HasPrefix(text, "(") {
		return text
	}
	depth := 0
	for i, c := range text {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 && i < len(text)-1 {
			return text
		}
	}
	return text[1 : len(text)-1]
}

// setValid adds a header with zero fields, or removes it.
func (e *emitter) setValid(s SetValid, headers string) {
	if !s.Valid {
		e.line("%s->%s->pif_valid = 0;", headers, s.Header.Name)
		return
	}
	e.line("if (!%s->%s->pif_valid)", headers, s.Header.Name)
	e.line("\t*%s->%s = (struct pif_header_%s){ .pif_valid = 1 };", headers, s.Header.Name, s.Header.Name)
}

func (e *emitter) assign(s Assign, headers string) {
	h := s.To.Header
	target := func(w word) string { return fmt.Sprintf("%s->%s->%s", headers, h.Name, w.name) }
	words := s.To.words()
	switch from := s.From.(type) {
	case Const:
		for _, w := range words {
			e.line("%s = %s;", target(w), constWord(from.Value, w))
		}
		return
	case Ref:
		if from.Field.Width == s.To.Width {
			for i, w := range from.Field.words() {
				e.line("%s = %s->%s->%s;", target(words[i]), headers, from.Field.Header.Name, w.name)
			}
			return
		}
	}
	value := e.expr(s.From, headers)
	if len(words) == 1 {
		e.line("%s = %s;", target(words[0]), value)
		return
	}
	e.line("{")
	e.line("uint64_t value = %s;", value)
	e.line("")
	for _, w := range words {
		if w.low() >= 64 {
			e.line("%s = 0;", target(w))
		} else {
			e.line("%s = value >> %d;", target(w), w.low())
		}
	}
	e.line("}")
}

// constWord is the bits of a constant in one word of a field, as a C number.
func constWord(v *big.Int, w word) string {
	part := new(big.Int).Rsh(v, uint(w.low()))
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(w.width)), big.NewInt(1))
	return fmt.Sprintf("%#x", part.And(part, mask)) // two's complement of negative ones, as big.Int has it
}

// expr is a value in C.
func (e *emitter) expr(x Expr, headers string) string {
	switch x := x.(type) {
	case Const:
		v := new(big.Int).And(x.Value, new(big.Int).SetUint64(^uint64(0)))
		if v.BitLen() <= 31 {
			return v.String()
		}
		return fmt.Sprintf("%#xULL", v)
	case Ref:
		return e.value(x.Field, headers)
	case IsValid:
		return fmt.Sprintf("%s->%s->pif_valid", headers, x.Header.Name)
	case Unary:
		if x.Op == "!" {
			return "!(" + e.expr(x.X, headers) + ")"
		}
		return x.Op + "(uint64_t)(" + e.expr(x.X, headers) + ")"
	case Binary:
		return e.binary(x, headers)
	}
	return "0"
}

func (e *emitter) binary(x Binary, headers string) string {
	if x.Op == "==" || x.Op == "!=" {
		if text := e.wideCompare(x, headers); text != "" {
			return text
		}
	}
	a, b := e.expr(x.X, headers), e.expr(x.Y, headers)
	switch x.Op {
	case "&&", "||":
		return "(" + a + ") " + x.Op + " (" + b + ")"
	case "==", "!=", "<", ">", "<=", ">=", "&", "|", "^":
		return "(" + a + " " + x.Op + " " + b + ")"
	case "<<", ">>": // shifts by the whole width are undefined in C
		return fmt.Sprintf("pif_shift_%s(%s, %s)", map[string]string{"<<": "left", ">>": "right"}[x.Op], a, b)
	}
	return "((uint64_t)(" + a + ") " + x.Op + " (" + b + "))"
}

// value is a field's low 64 bits.
func (e *emitter) value(f *Field, headers string) string {
	var parts []string
	for _, w := range f.words() {
		text := fmt.Sprintf("%s->%s->%s", headers, f.Header.Name, w.name)
		switch {
		case f.Width <= WordBits:
			return text
		case w.low() > 0 && w.low() < 64:
			text = fmt.Sprintf("(uint64_t)%s << %d", text, w.low())
		case w.low() >= 64:
			continue
		}
		parts = append(parts, text)
	}
	return "(" + strings.Join(parts, " | ") + ")"
}

// wideCompare compares values of more than 64 bits word by word.
func (e *emitter) wideCompare(x Binary, headers string) string {
	a, aRef := x.X.(Ref)
	b, bRef := x.Y.(Ref)
	if !aRef && bRef {
		a, aRef, b, bRef, x.Y = b, true, a, false, x.X
	}
	c, isConst := x.Y.(Const)
	if !aRef || (!bRef && !isConst) || (a.Field.Width <= 64 && (!bRef || b.Field.Width <= 64)) {
		return ""
	}
	if bRef && b.Field.Width != a.Field.Width {
		return ""
	}
	if isConst && c.Value.BitLen() > a.Field.Width {
		return fmt.Sprint(map[string]int{"==": 0, "!=": 1}[x.Op])
	}
	var parts []string
	for i, w := range a.Field.words() {
		left := fmt.Sprintf("%s->%s->%s", headers, a.Field.Header.Name, w.name)
		var right string
		if isConst {
			right = constWord(c.Value, w)
		} else {
			right = fmt.Sprintf("%s->%s->%s", headers, b.Field.Header.Name, b.Field.words()[i].name)
		}
		parts = append(parts, left+" == "+right)
	}
	text := "(" + strings.Join(parts, " && ") + ")"
	if x.Op == "!=" {
		return "!" + text
	}
	return text
}

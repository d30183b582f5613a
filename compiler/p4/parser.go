package p4

import (
	"math/big"
	"slices"
)

// parser reads tokens into a syntax tree. At a syntax error it notes what it expected, and goes on at the next statement or declaration.
type parser struct {
	tokens []token
	errors *errorList
	depth  int
}

// bailout leaves a statement or declaration with a syntax error.
type bailout struct{}

func (p *parser) peek() token { return p.tokens[0] }

func (p *parser) next() token {
	t := p.tokens[0]
	if t.kind != kindEOF {
		p.tokens = p.tokens[1:]
	}
	return t
}

func (p *parser) is(text string) bool {
	t := p.peek()
	return t.text == text && (t.kind == kindMark || t.kind == kindName)
}

func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.next()
	return true
}

// fail reports what was expected in place of the next token.
func (p *parser) fail(expected string) {
	t := p.peek()
	p.errors.add(t.position, "expected %s, found %v", expected, t)
	panic(bailout{})
}

func (p *parser) expect(text string) token {
	if !p.is(text) {
		p.fail(quoted(text))
	}
	return p.next()
}

// oneOf is expect of several names.
func (p *parser) oneOf(texts ...string) string {
	if t := p.peek(); t.kind != kindName || !slices.Contains(texts, t.text) {
		p.fail(quoted(texts...))
	}
	return p.next().text
}

func (p *parser) name(what string) name {
	t := p.peek()
	if t.kind != kindName || reserved[t.text] {
		p.fail(what)
	}
	p.next()
	return name{t.position, t.text}
}

// reserved are the words that cannot be names: they show where a name is missing.
var reserved = map[string]bool{
	"if": true, "else": true, "and": true, "or": true, "not": true, "apply": true, "extract": true, "return": true, "select": true,
	"valid": true, "header_type": true, "header": true, "metadata": true, "parser": true, "table": true, "action": true, "control": true,
	"field_list": true, "field_list_calculation": true, "calculated_field": true, "primitive_action": true,
}

func (p *parser) number(what string) number {
	t := p.peek()
	negative := p.accept("-")
	if n := p.peek(); n.kind == kindNumber {
		p.next()
		v := n.value
		if negative {
			v = new(big.Int).Neg(v)
		}
		return number{t.position, v, n.width}
	}
	p.fail(what)
	return number{}
}

// small is a number that is used as a size.
func (p *parser) small(what string) int {
	n := p.number(what)
	if !n.value.IsInt64() || n.value.Int64() < 1 || n.value.Int64() > maxNumberBits {
		p.errors.add(n.position, "%v is not %s from 1 to %d", n.value, what, maxNumberBits)
		return 1
	}
	return int(n.value.Int64())
}

// try runs f and, if that bails out, skips to where a statement or declaration may begin.
func (p *parser) try(sync func(), f func()) {
	defer func() {
		switch e := recover(); e.(type) {
		case nil:
		case bailout:
			sync()
		default:
			panic(e)
		}
	}()
	f()
}

// skipStatement skips the rest of a statement: past its ";" or block, or up to the "}" around it.
func (p *parser) skipStatement() {
	for depth := 0; p.peek().kind != kindEOF; {
		switch {
		case p.is("{"):
			depth++
		case p.is("}"):
			if depth == 0 {
				return
			}
			if depth--; depth == 0 {
				p.next()
				return
			}
		case p.is(";") && depth == 0:
			p.next()
			return
		}
		p.next()
	}
}

// skipDeclaration skips tokens up to one that begins a declaration on its own line.
func (p *parser) skipDeclaration() {
	for p.peek().kind != kindEOF {
		if t := p.peek(); t.first && t.column == 1 && declarations[t.text] != nil {
			return
		}
		p.next()
	}
}

// block reads statements between braces.
func (p *parser) block(statement func()) {
	p.expect("{")
	p.deeper(func() {
		for !p.is("}") {
			if p.peek().kind == kindEOF {
				p.fail(quoted("}"))
			}
			p.try(p.skipStatement, statement)
		}
	})
	p.expect("}")
}

// deeper bounds the nesting of blocks and expressions.
func (p *parser) deeper(f func()) {
	if p.depth++; p.depth > 8*maxDepth {
		p.errors.add(p.peek().position, "nested more than %d deep", 8*maxDepth)
		panic(bailout{})
	}
	defer func() { p.depth-- }()
	f()
}

// list reads items between parentheses, separated by commas.
func (p *parser) list(item func()) {
	p.expect("(")
	if p.accept(")") {
		return
	}
	item()
	for p.accept(",") {
		item()
	}
	if !p.is(")") {
		p.fail(quoted(",", ")"))
	}
	p.next()
}

// declarations are keyed by their first word.
var declarations map[string]func(*parser, *file)

// unsupported are declarations of P4_14 that this dialect lacks, and what to do instead.
var unsupported = map[string]string{
	"counter":          "count in a global variable of the lambda",
	"meter":            "shares are the NIC's own to give: remove it",
	"register":         "keep state in a global variable of the lambda",
	"action_profile":   "name the actions in the table",
	"action_selector":  "name the actions in the table",
	"parser_exception": "packets that end too early go to the host: remove it",
	"parser_value_set": "write the values into the select",
}

func init() {
	declarations = map[string]func(*parser, *file){
		"header_type":            (*parser).headerType,
		"header":                 (*parser).instance,
		"metadata":               (*parser).instance,
		"field_list":             (*parser).fieldList,
		"field_list_calculation": (*parser).calculation,
		"calculated_field":       (*parser).calculatedField,
		"parser":                 (*parser).state,
		"primitive_action":       (*parser).primitive,
		"action":                 (*parser).action,
		"table":                  (*parser).table,
		"control":                (*parser).control,
	}
	for word := range unsupported {
		declarations[word] = (*parser).unsupported
	}
}

func (p *parser) unsupported(*file) {
	t := p.next()
	p.errors.add(t.position, "%s is not supported: %s", t.text, unsupported[t.text])
	p.skipStatement()
}

// parse reads a whole program. It always returns a tree, from which declarations with syntax errors are missing.
func parse(tokens []token, errors *errorList) *file {
	f := &file{}
	p := &parser{tokens: tokens, errors: errors}
	for p.peek().kind != kindEOF {
		p.depth = 0
		p.try(p.skipDeclaration, func() {
			d := declarations[p.peek().text]
			if d == nil || p.peek().kind != kindName {
				t := p.next()
				p.errors.add(t.position, "expected a declaration, found %v: one of %s", t, quoted("header_type", "header", "metadata",
					"parser", "primitive_action", "action", "table", "control", "field_list", "field_list_calculation", "calculated_field"))
				panic(bailout{})
			}
			d(p, f)
		})
	}
	return f
}

func (p *parser) headerType(f *file) {
	p.next()
	h := headerType{name: p.name("the header type's name")}
	p.block(func() {
		switch p.oneOf("fields", "length", "max_length") {
		case "fields":
			p.block(func() { h.fields = append(h.fields, p.fieldDecl()) })
		default:
			p.errors.add(p.peek().position, "headers of variable length are not supported: give the fields that are always there")
			panic(bailout{})
		}
	})
	f.types = append(f.types, h)
}

func (p *parser) fieldDecl() fieldDecl {
	d := fieldDecl{name: p.name("a field's name")}
	p.expect(":")
	if p.is("*") {
		p.errors.add(p.peek().position, "fields of variable width are not supported: give a number of bits")
		panic(bailout{})
	}
	d.width = p.small("a width in bits")
	p.expect(";")
	return d
}

func (p *parser) instance(f *file) {
	i := instance{metadata: p.next().text == "metadata"}
	i.typ = p.name("a header type's name")
	i.name = p.name("the instance's name")
	switch {
	case p.is("["):
		p.errors.add(p.peek().position, "header stacks are not supported: declare an instance for each")
		panic(bailout{})
	case i.metadata && p.is("{"):
		p.block(func() {
			field := p.name("a field's name")
			p.expect(":")
			i.init = append(i.init, initializer{field, p.number("a number")})
			p.expect(";")
		})
		p.accept(";")
	default:
		p.expect(";")
	}
	f.instances = append(f.instances, i)
}

func (p *parser) reference() reference {
	r := reference{name: p.name("a field")}
	if p.accept(".") {
		field := p.name("a field's name")
		r.field = &field
	}
	return r
}

func (p *parser) fieldList(f *file) {
	p.next()
	l := fieldList{name: p.name("the field list's name")}
	p.block(func() {
		var e listEntry
		if p.peek().kind == kindNumber {
			n := p.number("a number")
			e.number = &n
		} else {
			r := p.reference()
			e.ref = &r
		}
		p.expect(";")
		l.entries = append(l.entries, e)
	})
	f.lists = append(f.lists, l)
}

func (p *parser) calculation(f *file) {
	p.next()
	c := calculation{name: p.name("the calculation's name")}
	p.block(func() {
		switch p.oneOf("input", "algorithm", "output_width") {
		case "input":
			p.block(func() {
				c.inputs = append(c.inputs, p.name("a field list's name"))
				p.expect(";")
			})
		case "algorithm":
			p.expect(":")
			c.algorithm = p.name("an algorithm")
			p.expect(";")
		case "output_width":
			p.expect(":")
			c.width = p.number("a width in bits")
			p.expect(";")
		}
	})
	f.calculations = append(f.calculations, c)
}

func (p *parser) calculatedField(f *file) {
	p.next()
	c := calculatedField{field: p.reference()}
	p.block(func() {
		clause := calculationClause{verify: p.oneOf("verify", "update") == "verify"}
		clause.calc = p.name("a calculation's name")
		if p.accept("if") {
			p.expect("(")
			clause.when = p.expression()
			p.expect(")")
		}
		p.expect(";")
		c.clauses = append(c.clauses, clause)
	})
	f.calculated = append(f.calculated, c)
}

func (p *parser) primitive(f *file) {
	p.next()
	n := p.name("the primitive action's name")
	p.list(func() {
		p.errors.add(p.peek().position, "primitive actions take no parameters: hand values over in metadata")
		panic(bailout{})
	})
	p.expect(";")
	f.primitives = append(f.primitives, n)
}

func (p *parser) action(f *file) {
	p.next()
	a := action{name: p.name("the action's name")}
	p.list(func() { a.params = append(a.params, p.name("a parameter's name")) })
	p.block(func() { a.body = append(a.body, p.call()) })
	f.actions = append(f.actions, a)
}

// call reads NAME(ARGUMENTS);
func (p *parser) call() call {
	t := p.peek()
	if t.kind == kindName && (t.text == "extract" || !reserved[t.text]) {
		p.next()
	} else {
		p.fail("an action")
	}
	c := call{name: name{t.position, t.text}}
	p.list(func() { c.args = append(c.args, p.expression()) })
	p.expect(";")
	return c
}

func (p *parser) table(f *file) {
	p.next()
	t := table{name: p.name("the table's name")}
	p.block(func() {
		switch word := p.oneOf("reads", "actions", "default_action", "size", "min_size", "max_size", "support_timeout"); word {
		case "reads":
			p.block(func() { t.reads = append(t.reads, p.readKey()) })
		case "actions":
			p.block(func() {
				t.actions = append(t.actions, p.name("an action's name"))
				p.expect(";")
			})
		case "default_action":
			p.expect(":")
			c := call{name: p.name("an action's name")}
			if p.is("(") {
				p.list(func() { c.args = append(c.args, p.expression()) })
			}
			p.expect(";")
			t.dflt = &c
		default: // sizes follow from the rules
			p.expect(":")
			if !p.accept("true") && !p.accept("false") {
				p.number("a number")
			}
			p.expect(";")
		}
	})
	f.tables = append(f.tables, t)
}

func (p *parser) readKey() readKey {
	k := readKey{ref: p.reference()}
	if p.accept("mask") {
		n := p.number("a mask")
		k.mask = &n
	}
	p.expect(":")
	t := p.peek()
	k.kind = name{t.position, p.oneOf("exact", "ternary", "lpm", "valid")}
	p.expect(";")
	return k
}

package p4

// Parsing of what happens to a packet: parser states, controls, expressions.

func (p *parser) state(f *file) {
	p.next()
	s := parserState{name: p.name("the parser state's name")}
	p.block(func() {
		if s.closed {
			p.fail(quoted("}"))
		}
		if t := p.peek(); t.kind == kindName && t.text == "parse_error" {
			p.errors.add(t.position, "parser exceptions are not supported: return ingress, and drop the packet there")
			panic(bailout{})
		}
		if !p.is("return") {
			if t := p.peek(); t.text != "extract" && t.text != "set_metadata" {
				p.fail(quoted("extract", "set_metadata", "return"))
			}
			s.steps = append(s.steps, p.call())
			return
		}
		p.next()
		s.closed = true
		if p.accept("select") {
			p.selection(&s)
			return
		}
		next := p.name("a parser state or \"select\"")
		s.next = &next
		p.expect(";")
	})
	f.states = append(f.states, s)
}

func (p *parser) selection(s *parserState) {
	p.list(func() { s.keys = append(s.keys, p.expression()) })
	p.block(func() {
		c := selectCase{position: p.peek().position}
		if !p.accept("default") {
			c.values = append(c.values, p.maskedNumber())
			for p.accept(",") {
				c.values = append(c.values, p.maskedNumber())
			}
		}
		p.expect(":")
		c.next = p.name("a parser state")
		p.expect(";")
		s.cases = append(s.cases, c)
	})
	p.accept(";")
}

func (p *parser) maskedNumber() maskedNumber {
	m := maskedNumber{value: p.number("a number or \"default\"")}
	if p.accept("mask") {
		n := p.number("a mask")
		m.mask = &n
	}
	return m
}

func (p *parser) control(f *file) {
	p.next()
	c := control{name: p.name("the control's name")}
	c.body = p.statements()
	f.controls = append(f.controls, c)
}

func (p *parser) statements() []statement {
	var list []statement
	p.block(func() { list = append(list, p.statement()) })
	return list
}

func (p *parser) statement() statement {
	switch {
	case p.is("if"):
		return p.ifStatement()
	case p.is("apply"):
		return p.applyStatement()
	}
	c := callStatement{p.name("\"apply\", \"if\", a control or \"}\"")}
	p.expect("(")
	p.expect(")")
	p.expect(";")
	return c
}

func (p *parser) ifStatement() statement {
	p.expect("if")
	var s ifStatement
	p.expect("(")
	s.cond = p.expression()
	p.expect(")")
	s.then = p.statements()
	if !p.accept("else") {
		return s
	}
	if p.is("if") {
		p.deeper(func() { s.otherwise = []statement{p.ifStatement()} })
		return s
	}
	s.otherwise = p.statements()
	return s
}

func (p *parser) applyStatement() statement {
	p.next()
	p.expect("(")
	s := applyStatement{table: p.name("a table's name")}
	p.expect(")")
	if p.accept(";") {
		return s
	}
	if !p.is("{") {
		p.fail(quoted(";", "{"))
	}
	p.block(func() {
		b := applyBlock{label: p.name("\"hit\", \"miss\", \"default\" or an action")}
		b.body = p.statements()
		s.blocks = append(s.blocks, b)
	})
	return s
}

// operators by precedence, the lowest first. The words are P4's spelling of C's operators.
var operators = []map[string]string{
	{"or": "||", "||": "||"},
	{"and": "&&", "&&": "&&"},
	{"==": "==", "!=": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="},
	{"|": "|"},
	{"^": "^"},
	{"&": "&"},
	{"<<": "<<", ">>": ">>"},
	{"+": "+", "-": "-"},
	{"*": "*"},
}

func (p *parser) expression() expression {
	var e expression
	p.deeper(func() { e = p.binary(0) })
	return e
}

// maxOperators bounds one chain of operators, as their trees are walked recursively.
const maxOperators = 256

func (p *parser) binary(level int) expression {
	if level == len(operators) {
		return p.unary()
	}
	x := p.binary(level + 1)
	for n := 0; ; n++ {
		t := p.peek()
		op, ok := operators[level][t.text]
		if !ok || t.kind == kindNumber {
			return x
		}
		if n == maxOperators {
			p.errors.add(t.position, "more than %d operators in a row", maxOperators)
			panic(bailout{})
		}
		p.next()
		x = binary{t.position, op, x, p.binary(level + 1)}
	}
}

func (p *parser) unary() expression {
	t := p.peek()
	switch {
	case p.accept("not") || p.accept("!"):
		return p.operand(t, "!")
	case p.accept("~"):
		return p.operand(t, "~")
	case p.accept("-"):
		return p.operand(t, "-")
	}
	return p.primary()
}

func (p *parser) operand(t token, op string) expression {
	var x expression
	p.deeper(func() { x = p.unary() })
	return unary{t.position, op, x}
}

func (p *parser) primary() expression {
	switch t := p.peek(); {
	case p.accept("("):
		e := p.expression()
		p.expect(")")
		return e
	case t.kind == kindNumber:
		return p.number("a number")
	case p.accept("valid"):
		p.expect("(")
		v := validity{t.position, p.name("a header's name")}
		p.expect(")")
		return v
	case t.kind == kindName && !reserved[t.text]:
		return p.reference()
	}
	p.fail("a value")
	return nil
}

package p4

import (
	"math/big"

	"github.com/lambdanic/lambdanic/compiler/match"
)

// parser resolves the parser's states, and refuses graphs with cycles.
func (c *checker) parser() {
	for _, s := range c.file.states {
		if c.states[s.name.text] != nil {
			continue // reported
		}
		if s.name.text == "ingress" || s.name.text == "default" {
			c.errors.add(s.name.position, "%q is no name for a parser state: it ends parsing", s.name.text)
		}
		c.states[s.name.text] = &match.State{Name: s.name.text}
	}
	start := c.states["start"]
	if start == nil {
		c.errors.add(c.begin(), "there is no \"parser start\": parsing begins there")
		return
	}
	c.out.States = []*match.State{start}
	done := map[string]bool{}
	for i := range c.file.states {
		s := &c.file.states[i]
		if done[s.name.text] {
			continue
		}
		done[s.name.text] = true
		st := c.states[s.name.text]
		c.state(s, st)
		if st != start {
			c.out.States = append(c.out.States, st)
		}
	}
	c.acyclic(start, map[*match.State]int{})
}

// next finds the state of that name; nil is the end of parsing.
func (c *checker) next(n name) *match.State {
	if n.text == "ingress" {
		return nil
	}
	s := c.states[n.text]
	if s == nil {
		c.unknown(n, "parser state", append(sortedKeys(c.states), "ingress"))
	}
	return s
}

func (c *checker) state(s *parserState, out *match.State) {
	var latest *match.Header
	for _, k := range s.steps {
		if k.name.text == "extract" {
			if len(k.args) != 1 {
				c.errors.add(k.name.position, "extract takes (header), found %d values", len(k.args))
				continue
			}
			if h := c.headerArg(k.args[0]); h != nil {
				latest = h
				out.Steps = append(out.Steps, match.Extract{Header: h})
			}
			continue
		}
		out.Steps = append(out.Steps, c.call(k, scope{latest: latest})...)
	}
	if !s.closed {
		c.errors.add(s.name.position, "parser state %q does not say where to go: add \"return ingress;\"", s.name.text)
		return
	}
	if s.next != nil {
		out.Next = c.next(*s.next)
		return
	}
	widths := c.selectKeys(s, out, latest)
	for i, k := range s.cases {
		next := c.next(k.next)
		if len(k.values) == 0 {
			if i != len(s.cases)-1 {
				c.errors.add(k.position, "\"default\" is not the last case: those behind it would never be taken")
			}
			out.Next = next
		}
		for _, v := range k.values {
			out.Cases = append(out.Cases, match.Case{Values: c.split(v, widths), Next: next})
		}
	}
	if n := len(s.cases); n == 0 || len(s.cases[n-1].values) > 0 {
		c.errors.add(s.name.position, "the select of parser state %q has no default: add \"default : ingress;\"", s.name.text)
	}
}

func (c *checker) selectKeys(s *parserState, out *match.State, latest *match.Header) []int {
	var widths []int
	for _, e := range s.keys {
		x := c.expr(e, scope{latest: latest})
		ref, ok := x.(match.Ref)
		if !ok {
			if x != nil {
				c.errors.add(e.at(), "select takes fields")
			}
			continue
		}
		out.Keys = append(out.Keys, x)
		widths = append(widths, ref.Field.Width)
	}
	if len(s.keys) == 0 {
		c.errors.add(s.name.position, "the select of parser state %q has no field to look at", s.name.text)
	}
	return widths
}

// split cuts a value for all keys together into one for each: the first key is the most significant part.
func (c *checker) split(v maskedNumber, widths []int) []match.Masked {
	total := 0
	for _, w := range widths {
		total += w
	}
	if v.value.value.Sign() < 0 || v.value.value.BitLen() > total {
		c.errors.add(v.value.position, "%v does not fit into the select's %d bits", v.value.value, total)
	}
	out := make([]match.Masked, len(widths))
	for i, w := range widths {
		total -= w
		out[i].Value = bitsOf(v.value.value, total, w)
		if v.mask != nil {
			out[i].Mask = bitsOf(v.mask.value, total, w)
		}
	}
	return out
}

// bitsOf returns width bits of v, from bit low on.
func bitsOf(v *big.Int, low, width int) *big.Int {
	out := new(big.Int).Rsh(v, uint(low))
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(1))
	return out.And(out, mask)
}

// acyclic reports cycles among the states: packets are parsed in one pass.
func (c *checker) acyclic(s *match.State, colour map[*match.State]int) {
	const grey, black = 1, 2
	if s == nil || colour[s] == black {
		return
	}
	if colour[s] == grey {
		for i := range c.file.states {
			if n := c.file.states[i].name; n.text == s.Name {
				c.errors.add(n.position, "parser state %q leads back to itself: loops in the parser are not supported", s.Name)
			}
		}
		return
	}
	colour[s] = grey
	for _, k := range s.Cases {
		c.acyclic(k.Next, colour)
	}
	c.acyclic(s.Next, colour)
	colour[s] = black
}

// flatten lists the inputs of a field list, and tells whether the payload belongs to it.
func (c *checker) flatten(n name) (inputs []match.Input, payload bool) {
	l := c.lists[n.text]
	if l == nil {
		c.unknown(n, "field list", sortedKeys(c.lists))
		return nil, false
	}
	if !c.enter("field list", n) {
		return nil, false
	}
	defer c.leave()
	for _, e := range l.entries {
		switch {
		case e.number != nil:
			if e.number.width == 0 {
				c.errors.add(e.number.position, "a number in a field list needs a width, as 16'%v", e.number.value)
				continue
			}
			inputs = append(inputs, match.Input{Value: e.number.value, Width: e.number.width})
		case e.ref.field != nil:
			if f := c.field(*e.ref); f != nil {
				inputs = append(inputs, match.Input{Field: f, Width: f.Width})
			}
		case e.ref.text == "payload":
			payload = true
		case c.lists[e.ref.text] != nil:
			more, p := c.flatten(e.ref.name)
			if len(inputs)+len(more) > maxListInputs {
				c.errors.add(e.ref.position, "field list has more than %d entries", maxListInputs)
				return inputs, payload
			}
			inputs, payload = append(inputs, more...), payload || p
		case c.out.Header(e.ref.text) != nil:
			for _, f := range c.out.Header(e.ref.text).Fields {
				inputs = append(inputs, match.Input{Field: f, Width: f.Width})
			}
		default:
			c.unknown(e.ref.name, "header or field list", append(c.headerNames(false), sortedKeys(c.lists)...))
		}
	}
	return inputs, payload
}

// maxListInputs bounds lists of lists.
const maxListInputs = 4096

func (c *checker) calculatedFields() {
	for _, decl := range c.file.calculated {
		f := c.field(decl.field)
		if f == nil {
			continue
		}
		if f.Width != 16 || f.Offset%16 != 0 || f.Header.Metadata {
			c.errors.add(decl.field.position, "%s: a checksum needs a field of 16 bits at an even byte of a header", decl.field)
			continue
		}
		for _, clause := range decl.clauses {
			if k := c.clause(f, clause); k != nil {
				c.out.Calculations = append(c.out.Calculations, k)
			}
		}
	}
}

func (c *checker) clause(f *match.Field, clause calculationClause) *match.Calculation {
	decl := c.calculations[clause.calc.text]
	if decl == nil {
		c.unknown(clause.calc, "calculation", sortedKeys(c.calculations))
		return nil
	}
	if decl.algorithm.text != "csum16" {
		c.errors.add(decl.name.position, "calculation %q: expected algorithm \"csum16\", found %q", decl.name.text, decl.algorithm.text)
		return nil
	}
	if decl.width.value == nil || decl.width.value.Cmp(big.NewInt(16)) != 0 {
		c.errors.add(decl.name.position, "calculation %q: expected output_width 16", decl.name.text)
		return nil
	}
	k := &match.Calculation{Field: f, Verify: clause.verify, Update: !clause.verify}
	for _, n := range decl.inputs {
		inputs, payload := c.flatten(n)
		k.Inputs, k.Payload = append(k.Inputs, inputs...), k.Payload || payload
	}
	if clause.when != nil {
		k.When = c.condition(clause.when, scope{})
	}
	if k.Verify && k.Payload {
		return nil // the receiver checks it: it has to read the payload anyway
	}
	return k
}

package p4

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/compiler/match"
)

// checker resolves the names in a syntax tree, and makes the match stage from it.
type checker struct {
	name   string // the program's file
	file   *file
	errors *errorList
	out    *match.Program

	types        map[string]*headerType
	lists        map[string]*fieldList
	calculations map[string]*calculation
	states       map[string]*match.State
	primitives   map[string]bool
	actions      map[string]*action
	resolved     map[string]*match.Action
	tables       map[string]*match.Table
	controls     map[string]*control
	size         int      // statements made so far
	open         []string // actions, controls or lists that are being resolved, against recursion
}

// index maps declarations by name, and reports duplicates.
func index[T any](c *checker, what string, list []T, nameOf func(*T) name) map[string]*T {
	m := make(map[string]*T, len(list))
	for i := range list {
		n := nameOf(&list[i])
		if _, twice := m[n.text]; twice {
			c.errors.add(n.position, "%s %q is declared twice", what, n.text)
			continue
		}
		m[n.text] = &list[i]
	}
	return m
}

// unknown reports an undeclared name, and suggests a similar known name.
func (c *checker) unknown(n name, what string, known []string) {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(n.text, k); d < distance {
			best, distance = k, d
		}
	}
	if best != "" {
		c.errors.add(n.position, "%s %q is not declared: did you mean %q?", what, n.text, best)
		return
	}
	c.errors.add(n.position, "%s %q is not declared", what, n.text)
}

// editDistance is the Levenshtein distance.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func check(program string, f *file, errors *errorList) *match.Program {
	c := &checker{
		name: program, file: f, errors: errors, out: &match.Program{},
		states: map[string]*match.State{}, resolved: map[string]*match.Action{}, tables: map[string]*match.Table{},
		primitives: map[string]bool{},
	}
	c.types = index(c, "header type", f.types, func(t *headerType) name { return t.name })
	c.lists = index(c, "field list", f.lists, func(l *fieldList) name { return l.name })
	c.calculations = index(c, "calculation", f.calculations, func(l *calculation) name { return l.name })
	c.actions = index(c, "action", f.actions, func(a *action) name { return a.name })
	c.controls = index(c, "control", f.controls, func(k *control) name { return k.name })
	index(c, "table", f.tables, func(t *table) name { return t.name })
	index(c, "parser state", f.states, func(s *parserState) name { return s.name })
	c.headers()
	for _, n := range f.primitives {
		c.primitive(n)
	}
	c.parser()
	for i := range f.actions {
		c.action(f.actions[i].name)
	}
	for i := range f.tables {
		c.table(&f.tables[i])
	}
	if c.controls["ingress"] == nil {
		c.errors.add(c.begin(), "there is no \"control ingress\": it says what happens to a packet")
	}
	c.out.Ingress = c.control("ingress")
	c.out.Egress = c.control("egress")
	c.calculatedFields()
	c.checkClones()
	return c.out
}

// begin is the place of messages about missing declarations.
func (c *checker) begin() position { return position{c.name, 1, 1} }

// enter notes that a declaration is being resolved, and refuses one that refers to itself.
func (c *checker) enter(what string, n name) bool {
	if slices.Contains(c.open, what+" "+n.text) {
		c.errors.add(n.position, "%s %q leads to itself: %s", what, n.text, strings.Join(append(c.open, what+" "+n.text), " → "))
		return false
	}
	if len(c.open) > maxDepth {
		c.errors.add(n.position, "%s %q is nested more than %d deep", what, n.text, maxDepth)
		return false
	}
	c.open = append(c.open, what+" "+n.text)
	return true
}

// maxStatements bounds programs whose actions and controls multiply by calling each other.
const maxStatements = 1 << 15

// spend counts statements, and tells whether the limit allows them.
func (c *checker) spend(n int, at name) bool {
	if c.size > maxStatements {
		return false // reported
	}
	if c.size += n; c.size > maxStatements {
		c.errors.add(at.position, "the program grows to more than %d statements: call fewer actions and controls from each other", maxStatements)
		return false
	}
	return true
}

func (c *checker) leave() { c.open = c.open[:len(c.open)-1] }

func (c *checker) primitive(n name) {
	switch {
	case c.primitives[n.text]:
		c.errors.add(n.position, "primitive action %q is declared twice", n.text)
		return
	case builtins[n.text] != nil:
		c.errors.add(n.position, "primitive action %q has the name of one of the language's own: choose another", n.text)
		return
	case c.actions[n.text] != nil:
		c.errors.add(n.position, "primitive action %q has the name of an action: choose another", n.text)
		return
	}
	c.primitives[n.text] = true
	c.out.Primitives = append(c.out.Primitives, n.text)
}

func (c *checker) headers() {
	c.out.Headers = append(c.out.Headers, match.NewStandardMetadata())
	for _, i := range c.file.instances {
		if c.out.Header(i.name.text) != nil {
			c.errors.add(i.name.position, "header %q is declared twice", i.name.text)
			continue
		}
		t := c.types[i.typ.text]
		if t == nil {
			c.unknown(i.typ, "header type", sortedKeys(c.types))
			t = &headerType{} // so that at least the instance is known
		}
		c.speakable(i.name)
		h := &match.Header{Name: i.name.text, Type: i.typ.text, Metadata: i.metadata}
		for _, f := range t.fields {
			if h.Field(f.name.text) != nil {
				c.errors.add(f.name.position, "field %q is declared twice", f.name.text)
				continue
			}
			c.speakable(f.name)
			h.Fields = append(h.Fields, &match.Field{Header: h, Name: f.name.text, Width: f.width, Offset: h.Bits()})
		}
		if !h.Metadata && h.Bits()%8 != 0 {
			c.errors.add(i.name.position, "header %q has %d bits: add a field that fills its last byte", h.Name, h.Bits())
		}
		for _, v := range i.init {
			if f := h.Field(v.field.text); f != nil {
				f.Init = v.value.value
			} else {
				c.unknown(v.field, "field", fieldNames(h))
			}
		}
		c.out.Headers = append(c.out.Headers, h)
	}
}

// keywords are C's keywords and predefined macros: the lambda could not use them as names.
var keywords = strings.Fields(`auto break case char const continue default do double else enum extern float for goto if inline int
	long register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof linux
	unix bool true false`)

// speakable refuses names that the lambda could not use in C.
func (c *checker) speakable(n name) {
	if slices.Contains(keywords, n.text) {
		c.errors.add(n.position, "%q is a word of C, in which the lambda is written: choose another name", n.text)
	}
}

func fieldNames(h *match.Header) []string {
	var names []string
	for _, f := range h.Fields {
		names = append(names, f.Name)
	}
	return names
}

func (c *checker) headerNames(packet bool) []string {
	var names []string
	for _, h := range c.out.Headers {
		if !packet || !h.Metadata {
			names = append(names, h.Name)
		}
	}
	return names
}

// header finds a header of packets.
func (c *checker) header(n name) *match.Header {
	h := c.out.Header(n.text)
	if h == nil {
		c.unknown(n, "header", c.headerNames(true))
		return nil
	}
	if h.Metadata {
		c.errors.add(n.position, "%q is metadata, which no packet carries: expected a header", n.text)
		return nil
	}
	return h
}

// field finds HEADER.FIELD.
func (c *checker) field(r reference) *match.Field {
	h := c.out.Header(r.text)
	if h == nil && r.field == nil {
		c.errors.add(r.position, "%q is not declared: expected a number, a parameter or HEADER.FIELD; a macro needs a #define", r.text)
		return nil
	}
	if h == nil {
		c.unknown(r.name, "header", c.headerNames(false))
		return nil
	}
	if r.field == nil {
		c.errors.add(r.position, "%q is a header: expected one of its fields, as %s.FIELD", r.text, r.text)
		return nil
	}
	f := h.Field(r.field.text)
	if f == nil {
		c.unknown(*r.field, "field", fieldNames(h))
	}
	return f
}

func (c *checker) table(t *table) {
	if c.tables[t.name.text] != nil {
		return // reported
	}
	out := &match.Table{Name: t.name.text}
	for _, k := range t.reads {
		if key, ok := c.key(k); ok {
			out.Keys = append(out.Keys, key)
		}
	}
	for _, n := range t.actions {
		if a := c.action(n); a != nil && !slices.Contains(out.Actions, a) {
			out.Actions = append(out.Actions, a)
		}
	}
	if t.dflt != nil {
		if a := c.action(t.dflt.name); a != nil {
			call := match.Call{Action: a}
			for _, e := range t.dflt.args {
				call.Args = append(call.Args, c.expr(e, scope{}))
			}
			if len(call.Args) != len(a.Params) {
				c.errors.add(t.dflt.name.position, "action %q takes %d values, found %d", a.Name, len(a.Params), len(call.Args))
			}
			out.Default = &call
		}
	}
	c.tables[out.Name] = out
	c.out.Tables = append(c.out.Tables, out)
}

func (c *checker) key(k readKey) (match.Key, bool) {
	if k.kind.text == "valid" {
		if k.ref.field != nil {
			c.errors.add(k.ref.position, "only headers are valid or not: expected a header in place of %q", k.ref.String())
			return match.Key{}, false
		}
		h := c.header(k.ref.name)
		return match.Key{Kind: match.Valid, Header: h}, h != nil
	}
	f := c.field(k.ref)
	if f == nil {
		return match.Key{}, false
	}
	if f.Width > 64 && k.kind.text != "exact" {
		c.errors.add(k.ref.position, "%s has %d bits: %s keys have at most 64", k.ref, f.Width, k.kind.text)
		return match.Key{}, false
	}
	key := match.Key{Expr: match.Ref{Field: f}, Kind: map[string]match.Kind{
		"exact": match.Exact, "ternary": match.Ternary, "lpm": match.LPM,
	}[k.kind.text]}
	if k.mask != nil {
		key.Expr = match.Binary{Op: "&", X: key.Expr, Y: match.Const{Value: k.mask.value}}
	}
	return key, true
}

// control resolves a control's body. Controls that it calls are inlined.
func (c *checker) control(text string) []match.Stmt {
	k := c.controls[text]
	if k == nil || !c.enter("control", k.name) {
		return nil
	}
	defer c.leave()
	return c.statements(k.body)
}

func (c *checker) statements(list []statement) []match.Stmt {
	var out []match.Stmt
	for _, s := range list {
		if c.size++; c.size > maxStatements {
			return out
		}
		switch s := s.(type) {
		case ifStatement:
			cond := c.condition(s.cond, scope{})
			out = append(out, match.If{Cond: cond, Then: c.statements(s.then), Else: c.statements(s.otherwise)})
		case applyStatement:
			if a, ok := c.apply(s); ok {
				out = append(out, a)
			}
		case callStatement:
			if c.controls[s.name.text] == nil {
				c.unknown(s.name, "control", sortedKeys(c.controls))
				continue
			}
			out = append(out, c.controlCall(s.name)...)
		}
	}
	return out
}

func (c *checker) controlCall(n name) []match.Stmt {
	k := c.controls[n.text]
	if !c.spend(1, n) || !c.enter("control", name{n.position, k.name.text}) {
		return nil
	}
	defer c.leave()
	return c.statements(k.body)
}

func (c *checker) apply(s applyStatement) (match.Apply, bool) {
	t := c.tables[s.table.text]
	if t == nil {
		c.unknown(s.table, "table", sortedKeys(c.tables))
		return match.Apply{}, false
	}
	a := match.Apply{Table: t, After: map[*match.Action][]match.Stmt{}}
	c.labels(s.blocks)
	for _, b := range s.blocks {
		body := c.statements(b.body)
		switch b.label.text {
		case "hit":
			a.Hit = body
		case "miss":
			a.Miss = body
		case "default":
			a.Otherwise = body
		default:
			act := c.resolved[b.label.text]
			if act == nil || !slices.Contains(t.Actions, act) {
				c.errors.add(b.label.position, "table %q has no action %q: expected \"hit\", \"miss\", \"default\" or one of its actions", t.Name, b.label.text)
				continue
			}
			a.After[act] = body
		}
	}
	return a, true
}

// labels refuses blocks after an apply if two of them could run, or one never could: by P4_14's grammar of apply_and_select_block, they select
// either hit and miss, or the action that ran.
func (c *checker) labels(blocks []applyBlock) {
	seen := map[string]bool{}
	for _, b := range blocks {
		text := b.label.text
		byHit := text == "hit" || text == "miss"
		other := (seen["hit"] || seen["miss"]) != byHit && len(seen) > 0
		switch {
		case seen[text]:
			c.errors.add(b.label.position, "%q stands twice", text)
		case other:
			c.errors.add(b.label.position, "%q beside other blocks: either \"hit\" and \"miss\", or actions and \"default\"", text)
		}
		seen[text] = true
	}
}

// checkClones refuses clones at ingress, and clones that keep too much.
func (c *checker) checkClones() {
	words, kept := 0, map[*match.Field]bool{}
	for _, a := range c.reachable(c.out.Egress, map[*match.Action]bool{}) {
		for _, s := range a.Body {
			clone, _ := s.(match.Clone)
			for _, f := range clone.Keep {
				if !kept[f] {
					kept[f], words = true, words+f.Words()
				}
			}
		}
		if words > match.KeptWords {
			c.errors.add(c.actions[a.Name].name.position,
				"clones keep more than %d words of 32 bits of metadata: leave fields out of their field lists", match.KeptWords)
			break
		}
	}
	for _, a := range c.reachable(c.out.Ingress, map[*match.Action]bool{}) {
		if slices.ContainsFunc(a.Body, func(s match.Stmt) bool { _, is := s.(match.Clone); return is }) {
			c.errors.add(c.actions[a.Name].name.position,
				"action %q clones at egress, but is used in control ingress: apply its table in control egress", a.Name)
		}
	}
}

func (c *checker) reachable(list []match.Stmt, seen map[*match.Action]bool) []*match.Action {
	var out []*match.Action
	for _, s := range list {
		switch s := s.(type) {
		case match.If:
			out = append(out, c.reachable(slices.Concat(s.Then, s.Else), seen)...)
		case match.Apply:
			out = append(out, c.reachable(slices.Concat(s.Hit, s.Miss, s.Otherwise), seen)...)
			for _, a := range s.Table.Actions {
				if !seen[a] {
					seen[a] = true
					out = append(out, a)
				}
				out = append(out, c.reachable(s.After[a], seen)...)
			}
		}
	}
	return out
}

package randomc

import (
	"fmt"
	"strings"
)

// targets are two arrays of one type and all that leads into them. Every address that is given or kept has n elements behind it.
type targets struct {
	typ    ctype
	arrays [2]variable
	n      int
	kept   string   // an lvalue that keeps an address, with %s for an index below 4
	places []string // functions that give an address by a number, and change nothing
	change string   // a table of two functions that change what an address and a number say
}

// static begins a function's definition. Some are noinline, so that clang does not make them part of their callers.
func (g *generator) static() string {
	if g.chance(3) {
		return "static __attribute__((noinline))"
	}
	return "static"
}

// pointed declares the targets' arrays and what keeps addresses of their elements.
func (g *generator) pointed() {
	t := &g.targets
	t.typ, t.n = pick(g, types), 2+g.r.IntN(3)
	for i := range t.arrays {
		t.arrays[i] = variable{name: g.name("a"), typ: t.typ, n: pick(g, lengths[1:])}
		g.line("static %s %s[%d];", t.typ.name, t.arrays[i].name, t.arrays[i].n)
	}
	g.shared = append(g.shared, t.arrays[:]...)
	name := g.name("kept")
	if g.chance(2) {
		g.line("static %s *%s[4];", t.typ.name, name)
		t.kept = name + "[%s]"
	} else {
		g.line("static struct { uint32_t before; %s *at; } %s[4];", t.typ.name, name)
		t.kept = name + "[%s].at"
	}
}

// within is an address in one of the arrays, at the index below n that is given.
func (g *generator) within(index func(n int) string) string {
	v := pick(g, g.targets.arrays[:])
	return fmt.Sprintf("%s + (%s)", v.name, index(v.n-g.targets.n+1))
}

func (g *generator) constantPlace() string {
	return g.within(func(n int) string { return fmt.Sprint(g.r.IntN(n)) })
}

// numberedPlace is one that a number decides.
func (g *generator) numberedPlace(number string) string {
	return g.within(func(n int) string { return fmt.Sprintf("(uint32_t)%s %% %d", number, n) })
}

// written writes a function whose body is given.
func (g *generator) written(head, body string, args ...any) {
	g.block(func() { g.line(body, args...) }, "%s", head)
}

func (g *generator) givesPlaces() {
	for range 2 + g.r.IntN(3) {
		g.place()
	}
	if g.chance(2) {
		g.placeByFunction()
	}
}

// place writes a function that chooses an address itself.
func (g *generator) place() {
	t, name := &g.targets, g.name("at")
	head := fmt.Sprintf("%s %s *%s(uint32_t k)", g.static(), t.typ.name, name)
	a, b, c := g.constantPlace(), g.constantPlace(), g.numberedPlace("k")
	switch g.r.IntN(9) {
	case 0:
		g.written(head, "return %s;", a)
	case 1:
		g.written(head, "return %s;", c)
	case 2:
		g.written(head, "return k & 1 ? %s : %s;", a, b)
	case 3:
		g.written(head, "return "+t.kept+";", "k & 3")
	case 4:
		g.written(head, "return (%s *)(k & 2 ? (uintptr_t)(%s) : (uintptr_t)(%s));", t.typ.name, a, c)
	case 5:
		g.written(head, "static %s *const table[] = { %s, %s, %s };\n\n\treturn table[k %% 3];", t.typ.name, a, b, g.constantPlace())
	case 6:
		g.written(head, "switch (k %% 5) {\n\tcase 0:\n\t\treturn %s;\n\tcase 3:\n\t\treturn %s;\n\tdefault:\n\t\treturn %s;\n\t}", a, b, c)
	case 7:
		v := t.arrays[0]
		g.written(head, "%s *p = %s;\n\n\tfor (uint32_t i = 0; i < k %% %d; i++)\n\t\tp++;\n\treturn p;", t.typ.name, v.name, v.n-t.n+1)
	case 8:
		g.written(head, "%s *p;\n\n\tif (!(k &= 31))\n\t\treturn %s;\n\tp = %s(k >> 1);\n\treturn *p & 1 ? p : %s;", t.typ.name, a, name, c)
	}
	t.places = append(t.places, name)
}

// placeByFunction writes a function that calls one of the others by a pointer, from a table or from a function that gives it.
func (g *generator) placeByFunction() {
	t, name, from := &g.targets, g.name("at"), g.name("from")
	a, b, c := pick(g, t.places), pick(g, t.places), pick(g, t.places)
	head := fmt.Sprintf("%s %s *%s(uint32_t k)", g.static(), t.typ.name, name)
	if g.chance(2) {
		g.line("static %s *(*const %s[])(uint32_t) = { %s, %s, %s };", t.typ.name, from, a, b, c)
		g.written(head, "return %s[k %% 3](k >> 2);", from)
	} else {
		g.written(fmt.Sprintf("%s %s *(*%s(uint32_t k))(uint32_t)", g.static(), t.typ.name, from), "return k & 1 ? %s : %s;", a, b)
		g.written(head, "return %s(k)(k >> 1);", from)
	}
	t.places = append(t.places, name)
}

// changes writes functions that change what an address leads to, and a table of them.
func (g *generator) changes() {
	t := &g.targets
	var names []string
	for range 2 {
		name := g.name("c")
		g.local = []variable{{name: "p", typ: t.typ, n: t.n}, {name: "k", typ: types[5]}}
		g.cost, g.weight = 1, 16
		g.block(func() {
			g.double()
			for range 1 + g.r.IntN(2) {
				g.statement()
			}
			g.line("p[k & 1] += %s;", g.expression(1))
		}, "%s void %s(%s *p, uint32_t k)", g.static(), name, t.typ.name)
		names = append(names, name)
	}
	t.change = g.name("change")
	g.line("static void (*const %s[])(%s *, uint32_t) = { %s };", t.change, t.typ.name, strings.Join(names, ", "))
}

// address is an expression without effects. A scalar decides it, so that expressions end.
func (g *generator) address() string {
	number := g.scalarName()
	switch g.r.IntN(4) {
	case 0:
		return fmt.Sprintf(g.targets.kept, number+" & 3")
	case 1:
		return "(" + g.numberedPlace(number) + ")"
	}
	return fmt.Sprintf("%s((uint32_t)%s)", pick(g, g.targets.places), number)
}

func (g *generator) scalarName() string {
	for {
		if v := pick(g, g.readable()); v.n == 0 {
			return v.name
		}
	}
}

// byAddress names an element.
func (g *generator) byAddress() string {
	return fmt.Sprintf("%s[%s]", g.address(), g.index(g.targets.n))
}

// pointing writes a statement that keeps an address, or has something changed by one.
func (g *generator) pointing() {
	if g.targets.change != "" && g.chance(2) && g.cost+g.weight*40 <= costMax {
		g.cost += g.weight * 40
		g.line("%s[%s](%s, (uint32_t)%s);", g.targets.change, g.index(2), g.address(), g.expression(1))
		return
	}
	g.line(g.targets.kept+" = %s;", g.index(4), g.address())
}

// keepAll keeps an address wherever one can be kept.
func (g *generator) keepAll() {
	for i := range 4 {
		g.line(g.targets.kept+" = %s;", fmt.Sprint(i), g.constantPlace())
	}
}

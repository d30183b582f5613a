package randomc

import (
	"fmt"
	"slices"
	"strings"
)

// function writes one that may call those before it.
func (g *generator) function() {
	f := g.signature("f")
	params, result := g.parameters(f), pick(g, types).name
	g.cost, g.weight = 1, 1
	g.block(func() { g.body(2 + g.r.IntN(4)) }, "%s %s %s(%s)", g.static(), result, f.name, params)
	f.cost = g.cost
	g.functions = append(g.functions, f)
}

// signature chooses a function's name and what it takes.
func (g *generator) signature(prefix string) function {
	f := function{name: g.name(prefix), byValue: g.chance(4), pointed: g.chance(4)}
	for range g.r.IntN(4) {
		f.params = append(f.params, pick(g, types))
	}
	return f
}

// parameters declares those of a function; they are all that is local.
func (g *generator) parameters(f function) string {
	g.local = nil
	var params []string
	for _, t := range f.params {
		v := variable{name: g.name("p"), typ: t}
		params = append(params, t.name+" "+v.name)
		g.local = append(g.local, v)
	}
	if f.byValue {
		params = append(params, "struct pair s")
		for _, m := range pair {
			g.local = append(g.local, variable{name: "s." + m.name, typ: m.typ})
		}
	}
	if f.pointed {
		params = append(params, g.targets.typ.name+" *p")
		g.local = append(g.local, variable{name: "p", typ: g.targets.typ, n: g.targets.n})
	}
	if params == nil {
		return "void"
	}
	return strings.Join(params, ", ")
}

// body writes declarations, statements and a return.
func (g *generator) body(statements int) {
	g.scalar()
	if g.chance(2) {
		g.array()
	}
	if g.chance(2) {
		g.pointer()
	}
	end := ""
	if g.heap && g.chance(2) {
		end = g.allocation()
	}
	g.double()
	for range statements {
		g.statement()
	}
	if g.floats {
		g.line("%s += d > -1e9 && d < 1e9 ? (int64_t)(d * 16) : 5;", g.shared[0].name)
	}
	if end != "" {
		g.line("free(%s);", end)
		g.local = slices.DeleteFunc(g.local, func(v variable) bool { return v.name == end })
	}
	g.line("return %s;", g.expression(2))
}

// double declares the variable that statements with floating point change.
func (g *generator) double() {
	if g.floats {
		g.line("double d = %s;", g.expression(1))
	}
}

func (g *generator) scalar() {
	v := variable{name: g.name("v"), typ: pick(g, types)}
	g.line("%s %s = %s;", v.typ.name, v.name, g.expression(2))
	g.local = append(g.local, v)
}

func (g *generator) array() {
	v := variable{name: g.name("l"), typ: pick(g, types), n: pick(g, lengths)}
	g.line("%s %s[%d] = { %s };", v.typ.name, v.name, v.n, g.expression(1))
	g.local = append(g.local, v)
}

// pointer declares one that an expression gives, or one into some array or one of two, with half of its elements before it and half
// behind.
func (g *generator) pointer() {
	if g.chance(3) {
		p := variable{name: g.name("q"), typ: g.targets.typ, n: g.targets.n}
		g.line("%s *%s = %s;", p.typ.name, p.name, g.address())
		g.local = append(g.local, p)
		return
	}
	var arrays []variable
	for _, v := range slices.Concat(g.shared, g.local) {
		if v.n >= 4 && !v.fixed {
			arrays = append(arrays, v)
		}
	}
	if arrays == nil {
		return
	}
	v := pick(g, arrays)
	p := variable{name: g.name("q"), typ: v.typ, n: v.n / 2}
	g.line("%s *%s = %s + (%s);", p.typ.name, p.name, v.name, g.index(v.n/2))
	for _, other := range arrays {
		if other.typ == v.typ && other.name != v.name {
			p.n = min(p.n, other.n/2)
			g.line("if (%s)\n%s\t%s = &%s[%s];", g.expression(2), strings.Repeat("\t", g.depth), p.name, other.name, g.index(other.n/2))
			break
		}
	}
	g.local = append(g.local, p)
}

// allocation takes memory from the heap, to be freed by the name that it gives.
func (g *generator) allocation() string {
	v := variable{name: g.name("h"), typ: pick(g, types), n: pick(g, lengths)}
	g.line("%s *%s = malloc(%d * sizeof(%s));", v.typ.name, v.name, v.n, v.typ.name)
	g.line("if (!%s)\n%s\treturn 1;", v.name, strings.Repeat("\t", g.depth))
	g.line("for (int i = 0; i < %d; i++)\n%s\t%s[i] = i * %s;", v.n, strings.Repeat("\t", g.depth), v.name, g.constantOf(v.typ))
	g.local = append(g.local, v)
	return v.name
}

// statement writes one.
func (g *generator) statement() {
	g.cost += g.weight
	if g.nesting >= 3 {
		g.assignment()
		return
	}
	g.nesting++
	defer func() { g.nesting-- }()
	switch g.r.IntN(17) {
	case 0, 1:
		g.conditional()
	case 2, 3, 4:
		g.loop()
	case 5:
		g.selection()
	case 6, 7:
		g.call()
	case 8:
		g.copy()
	case 9:
		g.pointing()
	case 10:
		if g.floats {
			g.line("d = %s;", pick(g, []string{"d * 0.75 + 1", "d / 3 - 2", "d * d", "-d", "d + " + g.expression(1)}))
		}
		g.line("%s;", g.target()+pick(g, []string{"++", "--"}))
	default:
		g.assignment()
	}
}

func (g *generator) assignment() {
	op := pick(g, []string{"=", "=", "=", "+=", "-=", "*=", "^=", "|=", "&="})
	g.line("%s %s %s;", g.target(), op, g.expression(2))
}

// inner writes a block of a few statements, whose declarations end with it.
func (g *generator) inner(head string, args ...any) {
	known := len(g.local)
	g.block(func() {
		if g.chance(4) {
			g.scalar()
		}
		for range 1 + g.r.IntN(2) {
			g.statement()
		}
	}, head, args...)
	g.local = g.local[:known]
}

func (g *generator) conditional() {
	g.inner("if (%s)", g.expression(2))
	if g.chance(2) {
		g.inner("else")
	}
}

func (g *generator) selection() {
	g.line("switch (%s & 7) {", g.expression(2))
	for _, v := range g.r.Perm(8)[:2+g.r.IntN(3)] {
		g.line("case %d:", v)
		g.depth++
		for range 1 + g.r.IntN(2) {
			g.statement()
		}
		if !g.chance(6) {
			g.line("break;")
		}
		g.depth--
	}
	g.line("default:")
	g.depth++
	g.assignment()
	g.depth--
	g.line("}")
}

// loop writes one whose counter the body may read but not write.
func (g *generator) loop() {
	bound := pick(g, []int{2, 4, 7, 8, 16, 31, 64, 100})
	if g.weight*bound > 2000 || g.loops == 3 {
		g.assignment()
		return
	}
	i := variable{name: g.name("i"), typ: types[4], fixed: true}
	limit := fmt.Sprint(bound)
	if g.chance(3) {
		limit = fmt.Sprintf("(int)(%s & %d)", g.expression(2), bound-1)
	}
	g.weight *= bound
	g.loops++
	known := len(g.local)
	g.local = append(g.local, i)
	switch g.r.IntN(5) {
	case 0:
		g.inner("for (int %s = %s; %s > 0; %s--)", i.name, limit, i.name, i.name)
	case 1:
		g.inner("for (int %s = 0; %s < %d; %s += %d)", i.name, i.name, bound, i.name, 1+g.r.IntN(4))
	case 2:
		g.counted(i.name, bound)
	default:
		g.inner("for (int %s = 0; %s < %s; %s++)", i.name, i.name, limit, i.name)
	}
	g.local = g.local[:known]
	g.loops--
	g.weight /= bound
}

// counted writes a loop that the body's first or last statement ends.
func (g *generator) counted(i string, bound int) {
	g.line("int %s = 0;", i)
	if g.chance(2) {
		g.block(func() {
			g.line("if (++%s > %d || %s)\n%s\tbreak;", i, bound, g.expression(2), strings.Repeat("\t", g.depth))
			g.statement()
		}, "for (;;)")
		return
	}
	g.line("do {")
	g.depth++
	g.statement()
	g.depth--
	g.line("} while (++%s < %d && %s);", i, bound, g.expression(2))
}

// call calls a function as the only effect of a statement.
func (g *generator) call() {
	if len(g.functions) == 0 {
		g.assignment()
		return
	}
	f := pick(g, g.functions)
	if g.cost+g.weight*f.cost > costMax {
		g.assignment()
		return
	}
	g.cost += g.weight * f.cost
	g.line("%s = %s(%s);", variableTarget(g), f.name, g.arguments(f))
}

// variableTarget names a scalar: what a call changes must not say where its result goes.
func variableTarget(g *generator) string {
	for {
		if v := pick(g, g.readable()); !v.fixed && v.n == 0 {
			return v.name
		}
	}
}

// copy moves whole objects.
func (g *generator) copy() {
	switch g.r.IntN(4) {
	case 0:
		g.line("many[%s] = many[%s];", g.index(8), g.index(8))
	case 1:
		g.line("one = many[%s];", g.index(8))
	case 2:
		g.line("memset(many, %s, sizeof(many) / 2);", g.expression(1))
	default:
		g.line("memmove(many + (%s), many + (%s), 4 * sizeof(many[0]));", g.index(4), g.index(4))
	}
}

// recursion writes a function that calls itself, once or twice, to a bounded depth.
func (g *generator) recursion() {
	f := function{name: g.name("r"), params: []ctype{types[5], types[7]}}
	g.local = []variable{{name: "deep", typ: types[5], fixed: true}, {name: "x", typ: types[7]}}
	g.cost, g.weight = 1, 16
	g.block(func() {
		g.line("uint64_t y = 3;")
		g.line("")
		g.line("deep %%= 5;")
		g.line("if (!deep)\n\t\treturn x ^ %s;", g.expression(2))
		g.local = append(g.local, variable{name: "y", typ: types[7]})
		g.assignment()
		g.line("y += %s(deep - 1, %s);", f.name, g.expression(2))
		if g.chance(2) {
			g.assignment()
			g.line("y = y * 7 + %s(deep - 1, %s);", f.name, g.expression(2))
		}
		g.line("return y;")
	}, "static uint64_t %s(uint32_t deep, uint64_t x)", f.name)
	f.cost = 100
	g.functions = append(g.functions, f)
}

// table writes functions of one type, and one that calls them by pointers.
func (g *generator) table() {
	f := g.signature("t")
	result := pick(g, types).name
	if f.byValue && g.chance(2) {
		result = "struct pair"
	}
	var names []string
	var params string
	for i := range 4 {
		names = append(names, fmt.Sprint(f.name, "_", i))
		params = g.parameters(f)
		g.cost, g.weight = 1, 16
		g.block(func() {
			if g.chance(2) {
				g.double()
				g.statement()
			}
			if result == "struct pair" {
				g.line("return s;")
			} else {
				g.line("return %s;", g.expression(2))
			}
		}, "%s %s %s(%s)", g.static(), result, names[i], params)
		f.cost = max(f.cost, g.cost/16)
	}
	g.line("static %s (*const %s[])(%s) = { %s };", result, f.name, params, strings.Join(names, ", "))
	g.choosing(f, result)
}

// choosing writes a function that calls those of a table.
func (g *generator) choosing(t function, result string) {
	f := function{name: g.name("f"), params: []ctype{types[5], types[6]}, byValue: t.byValue, pointed: t.pointed}
	params := g.parameters(f)
	rounds := 1 + g.r.IntN(9)
	g.block(func() {
		g.line("uint64_t y = 0;")
		g.line("")
		g.block(func() {
			call := fmt.Sprintf("%s[(y + i) & 3](%s)", t.name, g.arguments(t))
			if result == "struct pair" {
				g.line("one = %s;", call)
				call = g.expression(1)
			}
			g.line("y = y * 7 + (uint64_t)%s;", call)
		}, "for (int i = 0; i < %d; i++)", rounds)
		g.line("return y;")
	}, "static uint64_t %s(%s)", f.name, params)
	f.cost = rounds * (1 + t.cost)
	g.functions = append(g.functions, f)
}

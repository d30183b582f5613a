package randomc

import (
	"fmt"
	"strings"
)

// expression writes one without effects, of any integer type.
func (g *generator) expression(depth int) string {
	if depth <= 0 || g.chance(5) {
		return g.leaf()
	}
	a, b := g.expression(depth-1), g.expression(depth-1)
	switch g.r.IntN(14) {
	case 0, 1, 2, 3:
		return fmt.Sprintf("(%s %s %s)", a, pick(g, []string{"+", "-", "*", "+", "-"}), b)
	case 4, 5:
		return fmt.Sprintf("(%s %s %s)", a, pick(g, []string{"&", "|", "^"}), b)
	case 6:
		return fmt.Sprintf("(%s%s)", pick(g, []string{"-", "~", "!"}), a)
	case 7:
		return fmt.Sprintf("(%s %s %s)", a, pick(g, []string{"<", "<=", ">", ">=", "==", "!="}), b)
	case 8:
		return fmt.Sprintf("(%s %s %s)", a, pick(g, []string{"&&", "||"}), b)
	case 9:
		return fmt.Sprintf("(%s ? %s : %s)", a, b, g.expression(depth-1))
	case 10:
		return g.shift(a, b)
	case 11:
		return g.division(a, b)
	case 12:
		return fmt.Sprintf("((%s)%s)", pick(g, types).name, a)
	}
	return g.leaf()
}

func (g *generator) shift(a, b string) string {
	t := pick(g, types)
	if g.chance(2) {
		for t.signed {
			t = pick(g, types)
		}
		return fmt.Sprintf("((%s)%s << (%s & %d))", t.name, a, b, t.bits-1)
	}
	return fmt.Sprintf("((%s)%s >> (%s & %d))", t.name, a, b, t.bits-1)
}

func (g *generator) division(a, b string) string {
	op := pick(g, []string{"/", "%"})
	switch g.r.IntN(4) {
	case 0: // by a constant
		t := pick(g, types)
		return fmt.Sprintf("((%s)%s %s %d)", t.name, a, op, 1+g.r.IntN(min(100, 1<<(t.bits-1)-1)))
	case 1:
		return fmt.Sprintf("((uint64_t)%s %s ((uint32_t)%s | 1u))", a, op, b)
	case 2:
		return fmt.Sprintf("((uint32_t)%s %s ((%s & 0x3fff) + 1))", a, op, b)
	}
	return fmt.Sprintf("%s%d(%s, %s)", pick(g, []string{"quotient", "rest"}), pick(g, []int{32, 64}), a, b)
}

func (g *generator) leaf() string {
	switch {
	case g.chance(4):
		return g.constantOf(pick(g, types))
	case g.chance(12):
		return g.byAddress()
	case g.chance(30):
		return fmt.Sprintf("(%s == %s)", g.address(), g.address())
	}
	return g.element(pick(g, g.readable()))
}

func (g *generator) readable() []variable {
	if len(g.local) > 0 && g.chance(2) {
		return g.local
	}
	return g.shared
}

// element names a scalar, or an element of an array.
func (g *generator) element(v variable) string {
	if v.n == 0 {
		return v.name
	}
	return fmt.Sprintf("%s[%s]", v.name, g.index(v.n))
}

// index is below n.
func (g *generator) index(n int) string {
	if g.chance(5) {
		return fmt.Sprint(g.r.IntN(n))
	}
	e := g.expression(1)
	for i := len(g.local) - 1; i >= 0; i-- {
		if v := g.local[i]; v.fixed && v.n == 0 && !g.chance(3) { // a loop's counter, as programs do
			e = v.name
			break
		}
	}
	if n&(n-1) == 0 {
		return fmt.Sprintf("%s & %d", e, n-1)
	}
	return fmt.Sprintf("(uint32_t)%s %% %d", e, n)
}

// target names what can be assigned to.
func (g *generator) target() string {
	if g.chance(8) {
		return fmt.Sprintf("many[%s].%s", g.index(8), pick(g, pair).name)
	}
	if g.chance(8) {
		return g.byAddress()
	}
	for {
		if v := pick(g, g.readable()); !v.fixed {
			return g.element(v)
		}
	}
}

// arguments for a call, without effects.
func (g *generator) arguments(f function) string {
	var args []string
	for range f.params {
		args = append(args, g.expression(2))
	}
	if f.byValue {
		args = append(args, fmt.Sprintf("many[%s]", g.index(8)))
	}
	if f.pointed {
		args = append(args, g.address())
	}
	return strings.Join(args, ", ")
}

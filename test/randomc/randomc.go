// Package randomc writes random programs in plain C. The C standard and the compiler's own rules (wrapping
// arithmetic, two's complement) define every result, so two targets have to agree. It follows Csmith (Yang, Chen, Eide and
// Regehr, PLDI 2011): code around each operation makes a program safe. Indices are masked, divisors and shifts guarded, loops
// counted, and no expression has two effects.
package randomc

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Name is every program's name, and that of its entry.
const Name = "random_program"

// Spec is the lambda.yml of the programs.
const Spec = "name: " + Name + "\nlimits:\n  memory: 4MiB\n  time: 10ms\n"

// InputMax is how many bytes of a request the programs look at.
const InputMax = 64

// Generate writes the program of a seed. Its reply is sums over its variables, made as it goes on.
func Generate(seed uint64) string {
	g := &generator{r: rand.New(rand.NewPCG(seed, 0x6c616d626461))}
	g.floats, g.heap = g.chance(8), g.chance(6)
	g.header(seed)
	g.globals()
	g.givesPlaces()
	for range 1 + g.r.IntN(3) {
		g.function()
	}
	if g.chance(4) {
		g.recursion()
	}
	if g.chance(4) {
		g.table()
	}
	if g.chance(3) {
		g.changes()
		g.function()
	}
	g.entry()
	return g.b.String()
}

// Requests are requests for the program of a seed; the first is empty.
func Requests(seed uint64) [][]byte {
	r := rand.New(rand.NewPCG(seed, 0x7265717565737473))
	list := [][]byte{nil}
	for _, n := range []int{1, 8, 33, InputMax, 100} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		list = append(list, b)
	}
	return list
}

// A ctype is an integer type.
type ctype struct {
	name   string
	bits   int
	signed bool
}

var types = []ctype{
	{"int8_t", 8, true}, {"uint8_t", 8, false}, {"int16_t", 16, true}, {"uint16_t", 16, false},
	{"int32_t", 32, true}, {"uint32_t", 32, false}, {"int64_t", 64, true}, {"uint64_t", 64, false},
}

// A variable can be read, and written unless it is fixed. With several elements, it is an array, or a pointer to so many.
type variable struct {
	name  string
	typ   ctype
	n     int // elements; 0: a scalar
	fixed bool
}

// A function can be called. All its parameters are scalars, except the last ones where it takes a struct or an address.
type function struct {
	name    string
	params  []ctype
	byValue bool // struct pair
	pointed bool // an address in the targets
	cost    int  // statements that a call executes at most, about
}

type generator struct {
	r            *rand.Rand
	b            strings.Builder
	depth        int // of indentation
	floats, heap bool

	shared    []variable // globals
	local     []variable
	functions []function
	targets   targets

	names   int
	cost    int // of the function being written
	weight  int // how often the statement being written is executed
	loops   int // that enclose it
	nesting int
}

const costMax = 20000 // of a program

func (g *generator) chance(n int) bool { return g.r.IntN(n) == 0 }

func pick[T any](g *generator, list []T) T { return list[g.r.IntN(len(list))] }

func (g *generator) name(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

// line writes one line.
func (g *generator) line(format string, args ...any) {
	g.b.WriteString(strings.Repeat("\t", g.depth))
	fmt.Fprintf(&g.b, format, args...)
	g.b.WriteByte('\n')
}

// block writes head, what body writes indented, and the end.
func (g *generator) block(body func(), head string, args ...any) {
	g.line(head+" {", args...)
	g.depth++
	body()
	g.depth--
	g.line("}")
}

func (g *generator) header(seed uint64) {
	g.line("/* Random program %d. */", seed)
	g.line("#pragma clang diagnostic ignored \"-Weverything\"")
	g.line("#include <lambda.h>")
	g.line("#include <stdint.h>")
	if g.heap {
		g.line("#include <stdlib.h>")
	}
	g.line("#include <string.h>")
	g.line("")
	for _, t := range []ctype{types[4], types[6]} {
		g.block(func() {
			g.line("return !b || b == -1 ? a : a / b;")
		}, "static %s quotient%d(%s a, %s b)", t.name, t.bits, t.name, t.name)
		g.block(func() {
			g.line("return !b || b == -1 ? b : a %% b;")
		}, "static %s rest%d(%s a, %s b)", t.name, t.bits, t.name, t.name)
	}
}

// The lengths of arrays: powers of two are indexed by masks, others by remainders.
var lengths = []int{2, 4, 5, 7, 8, 13, 16, 16, 32, 64}

// pair is the one struct type that programs have, with members of most types.
var pair = []variable{
	{name: "a", typ: types[4]}, {name: "b", typ: types[7]}, {name: "c", typ: types[1]}, {name: "d", typ: types[2]}, {name: "e", typ: types[5]},
}

func (g *generator) globals() {
	g.line("struct pair {")
	for _, m := range pair[:4] {
		g.line("\t%s %s;", m.typ.name, m.name)
	}
	g.line("\tuint32_t e : 11;")
	g.line("};")
	for range 1 + g.r.IntN(4) {
		v := variable{name: g.name("g"), typ: pick(g, types)}
		g.line("static %s %s;", v.typ.name, v.name)
		g.shared = append(g.shared, v)
	}
	for range 1 + g.r.IntN(3) {
		v := variable{name: g.name("a"), typ: pick(g, types), n: pick(g, lengths)}
		g.line("static %s %s[%d];", v.typ.name, v.name, v.n)
		g.shared = append(g.shared, v)
	}
	for range g.r.IntN(3) {
		v := variable{name: g.name("k"), typ: pick(g, types), n: pick(g, lengths), fixed: true}
		g.line("static const %s %s[%d] = { %s };", v.typ.name, v.name, v.n, g.constants(v))
		g.shared = append(g.shared, v)
	}
	g.pointed()
	g.line("static struct pair one, many[8];")
	for _, m := range pair {
		g.shared = append(g.shared, variable{name: "one." + m.name, typ: m.typ})
	}
	g.line("")
}

func (g *generator) constants(v variable) string {
	list := make([]string, v.n)
	for i := range list {
		list[i] = g.constantOf(v.typ)
	}
	return strings.Join(list, ", ")
}

// constantOf gives a constant of a type: an interesting one, or any.
func (g *generator) constantOf(t ctype) string {
	bits := t.bits
	if t.signed {
		bits--
	}
	most := ^uint64(0) >> (64 - bits)
	v := pick(g, []uint64{0, 1, 2, 3, 7, 10, most, most - 1, g.r.Uint64() & most, g.r.Uint64N(100) & most})
	switch {
	case t.signed && g.chance(3):
		return fmt.Sprintf("(%s)(-%dll - 1)", t.name, v)
	case t.bits == 64 && !t.signed:
		return fmt.Sprintf("%dull", v)
	case t.bits == 64:
		return fmt.Sprintf("%dll", v)
	}
	return fmt.Sprintf("(%s)%d", t.name, v)
}

// entry writes the lambda: it fills the globals from the request, runs the functions, and replies with sums over the globals.
func (g *generator) entry() {
	g.block(func() {
		g.line("const uint8_t *p = data;")
		g.line("")
		g.line("while (n--)\n\t\th = (h ^ *p++) * 0x100000001b3ull;")
		g.line("return h;")
	}, "static uint64_t mix(uint64_t h, const void *data, uint32_t n)")
	g.block(func() { g.sums() }, "static uint64_t sum(uint64_t h)")
	g.block(func() {
		g.line("uint8_t in[%d] = { 0 };", InputMax)
		g.line("uint64_t out[%d], h = 0xcbf29ce484222325ull;", len(g.functions)+2)
		g.line("uint32_t n = lambda_read(headers, in, sizeof(in));")
		g.line("")
		g.line("(void)match_data;")
		g.fill()
		g.line("out[0] = h = mix(h, in, n);")
		for i, f := range g.functions {
			g.line("out[%d] = (uint64_t)%s(%s);", i+1, f.name, g.inputs(f))
		}
		g.line("out[%d] = sum(h);", len(g.functions)+1)
		g.line("return lambda_write(headers, out, sizeof(out));")
	}, "int %s(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)", Name)
}

// fill sets every global, as earlier requests left values there.
func (g *generator) fill() {
	for i, v := range g.shared {
		switch {
		case v.fixed:
		case v.n == 0:
			g.line("%s = (%s)in[%d] * %s;", v.name, v.typ.name, i%InputMax, g.constantOf(v.typ))
		default:
			g.line("for (int i = 0; i < %d; i++)\n\t\t%s[i] = in[(i + %d) & %d] * %s;", v.n, v.name, i, InputMax-1, g.constantOf(v.typ))
		}
	}
	g.line("for (int i = 0; i < 8; i++)\n\t\tmany[i] = (struct pair){ in[i], in[i + 8], in[i + 16], in[i + 24], in[i + 32] };")
	g.keepAll()
}

func (g *generator) sums() {
	for _, v := range g.shared {
		switch {
		case v.fixed || strings.Contains(v.name, "."):
		case v.n == 0:
			g.line("h = mix(h, &%s, sizeof(%s));", v.name, v.name)
		default:
			g.line("h = mix(h, %s, sizeof(%s));", v.name, v.name)
		}
	}
	g.line("h = h * 31 + one.a + one.b * 3 + one.c * 5 + one.d * 7 + one.e * 11;")
	g.line("for (int i = 0; i < 8; i++)\n\t\th = h * 33 + many[i].a + many[i].b * 3 + many[i].c * 5 + many[i].d * 7 + many[i].e * 11;")
	g.line("return h;")
}

// inputs are arguments from the request.
func (g *generator) inputs(f function) string {
	var args []string
	for _, t := range f.params {
		args = append(args, fmt.Sprintf("(%s)(in[%d] * %s)", t.name, g.r.IntN(InputMax), g.constantOf(t)))
	}
	if f.byValue {
		args = append(args, "many[3]")
	}
	if f.pointed {
		args = append(args, g.constantPlace())
	}
	return strings.Join(args, ", ")
}

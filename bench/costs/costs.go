// Package costs measures single operations of C on the NIC: for each it has a lambda that repeats the operation.
package costs

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
)

// Rounds is how often a lambda does its operation in a run.
const Rounds = 1000

// An Operation is done in each round of a loop. Its C finds there:
//
//	x     uint64_t, which changes unknown to the compiler; it is part of the reply
//	d, a  double, f, b  float: d and f are part of the reply
//	i     uint32_t, the number of the round
//	len   uint32_t, 1024
type Operation struct {
	Name    string // snake case, for results
	Title   string // for people
	Include string // a header
	Before  string // declarations
	Locals  string
	Body    string
	Times   int  // the operation is done in each round; 0: once
	Walked  bool // the verifier walks the loop: it is not charged
}

// Empty is the loop alone.
var Empty = Operation{Name: "round", Title: "round of a loop, with its charge"}

// Walked is the loop alone, of a constant number of rounds.
var Walked = Operation{Name: "round_walked", Title: "round of a loop that the verifier walks", Walked: true}

const (
	// bits make numbers from 1 to 2 of x, all of them normal.
	bits = `
static double number(uint64_t x)
{
	uint64_t word = x >> 12 | 0x3ff0000000000000;
	double d;
	__builtin_memcpy(&d, &word, sizeof(d));
	return d;
}
`
	functions = `
static uint64_t plus(uint64_t x) { return x + 3; }
static uint64_t minus(uint64_t x) { return x - 5; }
static uint64_t twice(uint64_t x) { return x * 2; }
static uint64_t half(uint64_t x) { return x / 2; }
static uint64_t (*const operations[])(uint64_t) = { plus, minus, twice, half };
`
	recursive = `
static uint64_t depth(uint32_t n, uint64_t x)
{
	if (!n)
		return x;
	return depth(n - 1, x + n) * 3 + n; /* something is left to do behind it */
}
`
	nodes = `
struct node { struct node *next; uint64_t value; };
extern struct node first;
static struct node third = { &first, 3 }, second = { &third, 2 };
struct node first = { &second, 1 };
`
	hash = `
#ifdef __bpf__
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, uint32_t);
	__type(value, uint64_t);
} table SEC(".maps");
#else
static uint64_t none;
#define bpf_map_lookup_elem(map, key) (*(key) > 1000000 ? &none : 0)
static int table;
#endif
`
)

// Operations are all that are measured.
var Operations = []Operation{
	{Name: "global_array", Title: "guarded access to a global array", Before: "static uint64_t table[2048];", Body: "x += table[i];"},
	{Name: "local_array", Title: "guarded access to a local array", Locals: "uint64_t local[2048]; local[0] = x;", Body: "local[i + 1] = x + local[i];"},
	{Name: "list_step", Title: "step in a linked list", Before: nodes, Locals: "struct node *p = &first;", Body: "p = p->next; x += p->value;"},
	{Name: "division_32", Title: "division by a variable, 32 bits", Body: "x += 1000000007u / ((uint32_t)x | 1);"},
	{Name: "signed_division_64", Title: "signed division, 64 bits", Body: "x += 1000000000000000003 / ((int64_t)x | 1);"},
	{Name: "product_128", Title: "product of 128 bits", Body: "x = ((unsigned __int128)x * 0x9e3779b97f4a7c15 >> 64) + i;"},
	{Name: "function_pointer", Title: "call through a pointer, 4 functions", Before: functions, Body: "x = operations[x >> 3 & 3](x);"},
	{Name: "recursion_level", Title: "level of recursion", Before: recursive, Body: "x = depth(len >> 7, x);", Times: 8},
	{Name: "malloc", Title: "`malloc` and `free`", Include: "stdlib.h", Body: "uint64_t *p = malloc(64); if (!p) return RETURN_FAULT; *p = x; free(p);"},
	{Name: "memcpy_kib", Title: "`memcpy`, each KiB", Include: "string.h", Before: "static uint64_t from[256], to[256];", Body: "memcpy(to + (x & 7), from, len); x += to[9];"},
	{Name: "memset_kib", Title: "`memset`, each KiB", Include: "string.h", Before: "static uint64_t to[256];", Body: "memset(to + (x & 7), (int)x, len); x += to[9];"},
	{Name: "strlen_byte", Title: "`strlen`, each byte", Include: "string.h", Before: "static char text[1025];", Locals: "for (uint32_t k = 0; k < len; k++) text[k] = 'a'; text[len] = 0;", Body: "x += strlen(text + (x & 1));", Times: 1024},
	{Name: "atomic", Title: "atomic addition, alone", Before: "static uint64_t count;", Body: "count += x;"},
	{Name: "lambda_now", Title: "`lambda_now`", Body: "x += lambda_now();"},
	{Name: "hash_lookup", Title: "look-up in a hash map", Before: hash, Body: "uint32_t key = x; if (bpf_map_lookup_elem(&table, &key)) x++;"},
	{Name: "float_add", Title: "addition, `float`", Body: "f = f + b;"},
	{Name: "float_multiply", Title: "product, `float`", Body: "f = f * b;"},
	{Name: "float_divide", Title: "division, `float`", Body: "f = f / b;"},
	{Name: "float_sqrt", Title: "`sqrtf`", Include: "math.h", Before: bits, Body: "x += (uint64_t)(sqrtf((float)number(x)) > f);"},
	{Name: "double_add", Title: "addition, `double`", Body: "d = d + a;"},
	{Name: "double_multiply", Title: "product, `double`", Body: "d = d * a;"},
	{Name: "double_divide", Title: "division, `double`", Body: "d = d / a;"},
	{Name: "double_sqrt", Title: "`sqrt`", Include: "math.h", Before: bits, Body: "x += (uint64_t)(sqrt(number(x)) * 0x1p52);"},
	{Name: "double_convert", Title: "`double` to integer and back", Body: "d = (double)((int64_t)d + 3);"},
	{Name: "sin", Title: "`sin`", Include: "math.h", Before: bits, Body: "x += (uint64_t)(sin(number(x)) > d);"},
	{Name: "exp", Title: "`exp`", Include: "math.h", Before: bits, Body: "x += (uint64_t)(exp(number(x)) > d);"},
	{Name: "pow", Title: "`pow`", Include: "math.h", Before: bits, Body: "x += (uint64_t)(pow(number(x), a) > d);"},
}

//go:embed cost.c.tmpl
var source string

var sourceTemplate = template.Must(template.New("cost").Parse(source))

const spec = "name: cost\nlimits:\n  time: 100ms\n  memory: 16MiB\n"

// Build compiles the operation's lambda: method is how many rounds there are. The request is d, a, b and f, double each, the reply
// x, d and f.
func (o Operation) Build(ctx context.Context) (*compiler.Artifact, error) {
	dir, err := os.MkdirTemp("", "lambdanic-cost-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var text bytes.Buffer
	if err := sourceTemplate.Execute(&text, struct {
		Operation
		Rounds int
	}{o, Rounds}); err != nil {
		return nil, fmt.Errorf("cost of %s: %w", o.Name, err)
	}
	for name, data := range map[string][]byte{api.SpecFile: []byte(spec), "cost.c": text.Bytes()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, fmt.Errorf("cost of %s: %w", o.Name, err)
		}
	}
	return compiler.Build(ctx, dir, compiler.Options{})
}

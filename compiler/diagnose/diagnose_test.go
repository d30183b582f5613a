package diagnose

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"
)

const prelude = `#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 8); __type(key, __u32); __type(value, __u64); } table SEC(".maps");
__u32 array[16];
volatile const __u32 fixed[4];
__u64 n, m;
extern int lookalike(void);
#define opaque(x) asm volatile("" : "+r"(x))
SEC("xdp") int lambda(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, *a = array;
	asm volatile("" :: "r"(data), "r"(end), "r"(zero), "r"(a));
#line 1 "lambda.c"
%s
	return XDP_PASS;
}
char LICENSE[] SEC("license") = "GPL";
`

// load compiles statements and loads the program, which the kernel refuses.
func load(t *testing.T, statements string) (*ebpf.CollectionSpec, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unit.c")
	if err := os.WriteFile(file, fmt.Appendf(nil, prelude, statements), 0o600); err != nil {
		t.Fatal(err)
	}
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	var stderr bytes.Buffer
	clang := exec.Command("clang-19", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-w", "-fwrapv", "-idirafter", "/usr/include/"+triplet,
		"-c", file, "-o", "-")
	clang.Stderr = &stderr
	object, err := clang.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err == nil {
		c.Close()
	}
	return spec, err
}

// The kernel's own verifier objects to each program, at the line that is marked.
func TestExplain(t *testing.T) {
	for name, c := range map[string]struct{ source, meaning string }{
		"packet":                   {"n = 1;\nm = data[20]; //!", "packet may end before the 1 bytes"},
		"packet, checked for less": {"if (data + 4 > end)\n\treturn 0;\nm = data[8]; //!", "packet may end"},
		"packet, far off": {"__u64 i = n;\nopaque(i);\nif (i > 1u << 30) return 0;\ndata += i;\nif (data + 1 > end) return 0;\nm = *data; //!",
			"offset into the packet may be too large|packet may end|further out of its object"},
		"index unbounded":   {"__u64 i = n;\nopaque(i);\nm = array[i]; //!", "an index may be any number"},
		"index too large":   {"__u64 i = n;\nopaque(i);\nif (i > 32) return 0;\nm = array[i]; //!", "of an object of"},
		"index negative":    {"__s64 i = n;\nopaque(i);\nif (i >= 16) return 0;\nm = array[i]; //!", "index may be negative|any number, negative"},
		"constant written":  {"__u32 *f = (void *)fixed;\nopaque(f);\nf[1] = 7; //!", "a constant is written to"},
		"element not found": {"__u64 *v = bpf_map_lookup_elem(&table, &zero);\n\n*v += 1; //!", "NULL"},
		"element moved before it is found": {"__u64 *v = bpf_map_lookup_elem(&table, &zero);\nvoid *p = v;\nasm volatile(\"%0 += 8\" : \"+r\"(p)); //!\nif (p)\n\tn = *(__u64 *)p;",
			"NULL"},
		"NULL":              {"__u8 *p = data + 4 > end ? 0 : data;\nopaque(p);\n*p = 1; //!", "the pointer may be NULL"},
		"NULL and an index": {"__u8 *p = data + 4 > end ? 0 : data;\nopaque(p);\np += 3;\n*p = 1; //!", "the pointer may be NULL"},
		"number as pointer": {"m = *(__u32 *)(long)n; //!", "a number is used as a pointer"},
		"length unbounded":  {"char b[64] = {};\n__u32 len = n;\nopaque(len);\nm = bpf_xdp_load_bytes(ctx, 0, b, len); //!", "length"},
		"length negative":   {"char b[64] = {};\n__s64 len = n;\nopaque(len);\nif (len > 64) return 0;\nm = bpf_xdp_load_bytes(ctx, 0, b, len); //!", "length may be negative"},
		"length zero":       {"char b[64] = {};\n__u32 len = n;\nopaque(len);\nif (len > 64) return 0;\nm = bpf_xdp_load_bytes(ctx, 0, b, len); //!", "may be zero"},
		"length too large": {"char b[64] = {};\n__u32 len = n;\nopaque(len);\nif (len > 65 || !len) return 0;\nm = bpf_xdp_load_bytes(ctx, 0, b, len); //!",
			"outside of a local variable"},
		"endless":       {"while (1) //!\n\tn++;", "not known to end"},
		"pointer times": {"a = (void *)((long)a << 1); //!\nm = *a;", "arithmetic other than sums"},
		"pointer sum":   {"m = *(__u32 *)((long)a + (long)&n); //!", "two pointers are added|a number is used"},
		"helper":        {"bpf_get_current_pid_tgid();\nm = bpf_override_return((void *)ctx, 0); //!", "may not call"},
		"context":       {"m = *(__u64 *)((char *)ctx + 64); //!", "no field"},
		"stack":         {"char b[300];\n__u32 i = n;\nopaque(i);\nif (i > 400) return 0;\nb[i] = 1; //!\nasm volatile(\"\" :: \"r\"(b) : \"memory\");", "stack|local variable"},
		"argument":      {"m = bpf_map_delete_elem(&table, (void *)n); //!", "argument 2"},
		"lock":          {"bpf_spin_lock((void *)&n); //!", "not a lock"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, err := load(t, c.source)
			if err == nil {
				t.Fatal("the kernel takes it")
			}
			o := Explain(err, spec.Programs["lambda"].Instructions)
			if o == nil {
				t.Fatalf("no objection in %v", err)
			}
			t.Log(o)
			line := 1 + strings.Count(c.source[:strings.Index(c.source, "//!")], "\n")
			if o.Place.File != "lambda.c" || o.Place.Line != line {
				t.Errorf("at %v, want lambda.c:%d\n%s", o.Place, line, strings.Join(tail(o.Log, 25), "\n"))
			}
			ok := slices.ContainsFunc(strings.Split(c.meaning, "|"), func(want string) bool { return strings.Contains(o.Meaning, want) })
			if !ok {
				t.Errorf("meaning %q, want %q, of %q", o.Meaning, c.meaning, o.Message)
			}
		})
	}
}

// Logs of Linux 6.18 that the kernel takes long to write, or does not write for root.
func TestExplainRecorded(t *testing.T) {
	for message, meaning := range map[string]string{
		"BPF program is too large. Processed 1000001 insn":      "the 1000001 instructions that the verifier walks",
		"The sequence of 8193 jumps is too complex.":            "more than 8193 branches",
		"invalid indirect read from stack R2 off -16+4 size 16": "before anything was stored",
		"invalid read from stack R10 off -8+0 size 8":           "before anything was stored",
		"combined stack size of 2 calls is 544. Too large":      "544 bytes of stack",
		"the call stack of 9 frames is too deep !":              "deeper than 8 levels",
		"R3 !read_ok":                 "not set on every path",
		"R0 invalid mem access 'inv'": "a number is used as a pointer",
		"back-edge from insn 12 to 4": "not known to end",
		"cannot call GPL-restricted function from non-GPL compatible program":                     "licence",
		"invalid access to map value, value_size=64 off=-4 size=4":                                "before the beginning",
		"R2 unbounded memory access, make sure to bounds check any such access":                   "no upper bound",
		"R2 unbounded memory access, use 'var &= const' or 'if (var < const)'":                    "length has no upper bound",
		"R1 min value is negative, either use unsigned index or do a if (index >=0) check.":       "index may be negative",
		"misaligned packet access off 0+1+0 size 4":                                               "not aligned",
		"value 1073741824 makes map_value pointer be out of bounds":                               "further out",
		"At program exit the register R0 has unknown scalar value should have been in (0x0; 0x1)": "not a verdict",
		"function calls are not allowed while holding a lock":                                     "lock",
		"write into map forbidden, value_size=4 off=0 size=4":                                     "a constant is written",
		"R2 pointer arithmetic on map_value_or_null prohibited, null-check it first":              "may be NULL",
	} {
		log := "0: R1=ctx() R10=fp0\n; n = 1; @ lambda.c:7\n0: (b7) r1 = 0 ; R1=0\n" + message + "\nprocessed 1 insns (limit 1000000) max_states_per_insn 0"
		o := Explain(&ebpf.VerifierError{Log: strings.Split(log, "\n")}, nil)
		if o == nil || o.Message != message || !strings.Contains(o.Meaning, meaning) || o.Place.Line != 7 || o.Advice == "" {
			t.Errorf("%s: got %+v, want %q", message, o, meaning)
		}
	}
}

func tail(lines []string, n int) []string { return lines[max(0, len(lines)-n):] }

func TestExplainOfOtherErrors(t *testing.T) {
	if o := Explain(errors.New("no memory"), nil); o != nil {
		t.Errorf("an objection: %v", o)
	}
	if o := Explain(fmt.Errorf("load program: %w", unix.EFAULT), nil); o == nil || o.Advice == "" {
		t.Errorf("no objection: %v", o)
	}
}

func TestHelper(t *testing.T) {
	for fn, want := range map[asm.BuiltinFunc]string{
		asm.FnMapLookupElem: "bpf_map_lookup_elem", asm.FnGetPrandomU32: "bpf_get_prandom_u32", asm.FnGetSmpProcessorId: "bpf_get_smp_processor_id",
	} {
		if got := Helper(fn); got != want {
			t.Errorf("%v: got %q, want %q", fn, got, want)
		}
	}
}

// A message of clang about a call is not taken for one of LLVM's about generated code.
func TestClangsOwnMessageStays(t *testing.T) {
	for _, text := range []string{
		"too many arguments to function call, expected single argument 'a', have 2 arguments",
		"too many arguments to function call, expected 1, have 2",
	} {
		if got := Compiler(text); got != "" {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// LLVM's message about a call begins with an address in its own memory, which is not shown.
func TestNoAddressOfLLVMs(t *testing.T) {
	for _, text := range []string{"too many arguments", "pass by value not supported"} {
		got := Compiler("0x5628d10a0d20: i64 = GlobalAddress<ptr @f> 0, probe.c:63:13 " + text)
		if got == "" || strings.Contains(got, "0x") {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

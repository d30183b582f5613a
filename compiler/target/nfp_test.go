package target

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const prelude = `#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#define MAP(name, kind, n, k, v) struct { __uint(type, BPF_MAP_TYPE_##kind); __uint(max_entries, n); __type(key, k); __type(value, v); } name SEC(".maps")
#define opaque(x) asm volatile("" : "+r"(x))
struct four { __u64 word[4]; };
struct large { __u64 word[16]; };
MAP(table, HASH, 1024, __u32, struct four);
MAP(other, ARRAY, 16, __u32, __u64);
MAP(lru, LRU_HASH, 16, __u32, __u64);
MAP(big, HASH, 16, __u32, struct large);
MAP(huge, HASH, 2000000, __u32, __u64);
__u64 n;
__attribute__((noinline)) int deep(void) { char b[400]; asm volatile("" :: "r"(b) : "memory"); return b[3]; }
SEC("xdp") int lambda(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	asm volatile("" :: "r"(data), "r"(end), "r"(zero));
	if (data + 64 > end) return XDP_PASS;
#line 1 "lambda.c"
%s
	return XDP_PASS;
}
char LICENSE[] SEC("license") = "GPL";
`

// object compiles statements.
func object(t *testing.T, statements string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unit.c")
	if err := os.WriteFile(file, fmt.Appendf(nil, prelude, statements), 0o600); err != nil {
		t.Fatal(err)
	}
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	var stderr bytes.Buffer
	clang := exec.Command("clang-19", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-w", "-idirafter", "/usr/include/"+triplet,
		"-c", file, "-o", "-")
	clang.Stderr = &stderr
	out, err := clang.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return out
}

func agilio(t *testing.T) *Model {
	t.Helper()
	m, err := Load("agilio-cx")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What the driver's source accepts is not refused.
func TestOffloadTakes(t *testing.T) {
	for name, source := range map[string]string{
		"a counter in a map": "__u32 k = data[12];\nstruct four *f = bpf_map_lookup_elem(&table, &k);\nif (f) __sync_fetch_and_add(&f->word[1], 1);",
		"a map that is read": "__u32 k = data[12] / 3 * 5;\nstruct four *f = bpf_map_lookup_elem(&table, &k);\nif (f) data[0] = f->word[1];",
		"an update":          "__u32 k = data[12];\nstruct four f = {{1, 2, 3, data[1]}};\nbpf_map_update_elem(&table, &k, &f, 0);",
		"an answer":          "__u8 t = data[0]; data[0] = data[6]; data[6] = t;\nreturn XDP_TX;",
		"a moved head":       "if (bpf_xdp_adjust_head(ctx, 14)) return XDP_DROP;\nreturn bpf_get_prandom_u32() & 1 ? XDP_DROP : XDP_TX;",
		"small loops":        "__u32 sum = 0;\nfor (int i = 0; i < 32; i++) sum += data[i];\ndata[3] = sum;",
	} {
		t.Run(name, func(t *testing.T) {
			found, err := agilio(t).Offload.Check(object(t, source), "lambda")
			if err != nil || len(found) > 0 {
				t.Errorf("got %v, %v", found, err)
			}
		})
	}
}

func TestOffloadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ source, what string }{
		"global object":   {"n++; //!", "a global or static object (n)"},
		"constant table":  {"static const __u8 t[256] = {1, 2, 3};\n__u8 i = data[0];\nopaque(i);\ndata[1] = t[i]; //!", "the card's maps have no addresses"},
		"store to a map":  {"struct four *f = bpf_map_lookup_elem(&table, &zero);\nif (f)\n\tf->word[1] = data[7]; //!", "a store to a map's element"},
		"helper":          {"data[0] = bpf_ktime_get_ns(); //!", "which the firmware has not"},
		"copy by helper":  {"char b[16];\nif (bpf_xdp_load_bytes(ctx, 0, b, 16)) //!\n\treturn XDP_DROP;\ndata[1] = b[3];", "which the firmware has not"},
		"tail call":       {"bpf_tail_call(ctx, &other, 1); //!", "which the firmware has not"},
		"map's type":      {"__u64 *v = bpf_map_lookup_elem(&lru, &zero); //!\nif (v) data[1] = *v;", "the map lru is a LRUHash"},
		"element's size":  {"struct large *v = bpf_map_lookup_elem(&big, &zero); //!\nif (v) data[1] = v->word[3];", "the card takes 64 together"},
		"elements":        {"__u64 *v = bpf_map_lookup_elem(&huge, &zero); \nif (v) data[1] = *v;", "2000000 elements"},
		"key in a packet": {"struct four *f = bpf_map_lookup_elem(&table, data + 4); //!\nif (f) data[1] = f->word[0];", "key is not in the stack"},
		"key not aligned": {"struct { char a; __u32 k; char b[3]; } __attribute__((packed)) x = {0, data[9]};\nasm volatile(\"\" :: \"r\"(&x) : \"memory\");\nstruct four *f = bpf_map_lookup_elem(&table, (char *)&x + 1); //!\nif (f) data[1] = f->word[0];",
			"key is not aligned"},
		"index into the stack": {"char b[32];\nasm volatile(\"\" :: \"r\"(b) : \"memory\");\n__u64 i = data[4] & 31;\nopaque(i);\ndata[1] = b[i]; //!", "a local array with a variable index"},
		"remainder":            {"__u32 m = data[3] | 1;\nopaque(m);\ndata[1] = data[2] % m; //!", "a remainder"},
		"variable divisor":     {"__u32 m = data[3] | 1;\nopaque(m);\ndata[1] = data[2] / m; //!", "not constant"},
		"long product":         {"__u64 m = *(__u64 *)data;\nm *= 1000003; //!\n*(__u64 *)data = m;", "may not fit in 32 bits"},
		"read and counted":     {"struct four *f = bpf_map_lookup_elem(&table, &zero);\nif (!f) return 0;\n__sync_fetch_and_add(&f->word[1], 1);\ndata[1] = f->word[1]; //!", "is read here and added to elsewhere"},
		"stored and counted":   {"struct four *f = bpf_map_lookup_elem(&table, &zero), v = {{0, data[1]}};\nif (f) __sync_fetch_and_add(&f->word[1], 1);\nelse bpf_map_update_elem(&table, &zero, &v, 0);", "stored by bpf_map_update_elem(), and added to"},
		"swap":                 {"__u64 w = data[3];\nasm volatile(\"%0 = le16 %0\" : \"+r\"(w)); //!\ndata[1] = w;", "other than to network order"},
		"sign extension":       {"__s64 w;\nasm volatile(\".byte 0x91; .byte %1; .short 0; .long 0\" : \"=r\"(w) : \"i\"(0x10)); //!\ndata[1] = data[2];", "does not translate"},
		"exchange":             {"struct four *f = bpf_map_lookup_elem(&table, &zero);\nif (!f) return 0;\ndata[1] = __sync_lock_test_and_set(&f->word[1], 1); //!", "other than an addition"},
		"context":              {"data[0] = ctx->ingress_ifindex; //!", "a field of the context"},
		"far into the packet":  {"if (data + 3000 > end) return 0;\ndata[0] = data[2900]; //!", "far into the packet"},
		"stack":                {"char b[300];\nasm volatile(\"\" :: \"r\"(b) : \"memory\");\ndata[3] = deep() + b[7];", "bytes of stack"},
		"metered loop":         {"again:\nasm volatile goto(\"may_goto %l[out]\" :::: out); //!\ngoto again;\nout:", "a loop that needs fuel"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := agilio(t).Offload.Check(object(t, c.source), "lambda")
			if err != nil {
				t.Fatal(err)
			}
			line := 0
			if at := strings.Index(c.source, "//!"); at >= 0 {
				line = 1 + strings.Count(c.source[:at], "\n")
			}
			for _, v := range found {
				if strings.Contains(v.What, c.what) && (line == 0 || v.Place.File == "lambda.c" && v.Place.Line == line) && v.Remedy != "" {
					return
				}
			}
			t.Errorf("got %v, want %q at line %d", found, c.what, line)
		})
	}
}

// A call puts a return address on the stack, and registers if the callee needs them, in frames of 64 bytes.
func TestStackOfCalls(t *testing.T) {
	for _, c := range []struct {
		own  int // bytes of the callee's
		fits bool
	}{{508, true}, {512, false}} {
		source := fmt.Sprintf("data[3] = called(); } __attribute__((noinline)) int called(void) { asm volatile(\"*(u8 *)(r10 - %d) = %%0\" :: \"r\"(1)); return 1; } int unused(void) {", c.own)
		found, err := agilio(t).Offload.Check(object(t, "int called(void);\n"+source), "lambda")
		if err != nil || (len(found) == 0) != c.fits {
			t.Errorf("%d bytes: %v, %v", c.own, found, err)
		}
	}
}

// No card takes a program for packets in fragments.
func TestFragments(t *testing.T) {
	source := "} SEC(\"xdp.frags\") int fragmented(struct xdp_md *ctx) {"
	found, err := agilio(t).Offload.Check(object(t, source), "fragmented")
	if err != nil || len(found) != 1 || !strings.Contains(found[0].What, "fragments") {
		t.Errorf("got %v, %v", found, err)
	}
}

func TestOffloadOfNonsense(t *testing.T) {
	if _, err := agilio(t).Offload.Check([]byte("no ELF"), "lambda"); err == nil {
		t.Error("took what is no object")
	}
	if _, err := agilio(t).Offload.Check(object(t, ""), "nobody"); err == nil {
		t.Error("took a program that is not there")
	}
}

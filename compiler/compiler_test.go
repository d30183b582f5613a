package compiler

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/check/percpu"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
)

const body = "(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)"

// lambda writes a lambda "probe" with that source into a new directory.
func lambda(t *testing.T, source string) string {
	t.Helper()
	return lambdaWith(t, "name: probe\n", source)
}

func lambdaWith(t *testing.T, spec, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{api.SpecFile: spec, "probe.c": source} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func build(t *testing.T, dir string) *Artifact {
	t.Helper()
	a, err := Build(t.Context(), dir, Options{Warn: func(d Diagnostic) { t.Errorf("warning: %v", d) }})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// The oracle is the kernel's verifier: what Build makes of plain C loads.
func TestBuildLoadsIntoTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	scaffolded := filepath.Join(t.TempDir(), "hello")
	if err := Scaffold(scaffolded, "hello"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"testdata/flip", "testdata/blur", "testdata/assemble", scaffolded} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			load(t, build(t, dir))
		})
	}
}

// What a new lambda begins with loads in each message mode, whose packets and messages lie in different memory.
func TestScaffoldLoadsInEachMode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	for _, mode := range []api.MessageMode{api.ModePacket, api.ModeAssemble, api.ModeStream} {
		t.Run(string(mode), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "hello")
			if err := Scaffold(dir, "hello"); err != nil {
				t.Fatal(err)
			}
			spec := fmt.Sprintf("name: hello\nmessage: {mode: %s}\n", mode)
			if err := os.WriteFile(filepath.Join(dir, api.SpecFile), []byte(spec), 0o600); err != nil {
				t.Fatal(err)
			}
			load(t, build(t, dir))
		})
	}
}

// load has the kernel's verifier judge an artifact.
func load(t *testing.T, a *Artifact) {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(a.BPF))
	if err != nil {
		t.Fatal(err)
	}
	if err := percpu.Fit(spec, ebpf.MustPossibleCPU()); err != nil {
		t.Fatal(err)
	}
	loaded, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatalf("%+v", err)
	}
	loaded.Close()
}

// Functions whose arguments or results do not fit the kernel's calling convention are inlined, even if the program needs nothing else from
// the compiler's passes.
func TestAnySignatureLoads(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
	const noinline = "static __attribute__((noinline)) "
	for name, tc := range map[string]struct{ functions, use string }{
		"six arguments": {
			noinline + "long f(long a, long b, long c, long d, long e, long g) { return (a * b + c * d) ^ (e * g); }\n",
			"f(n, n + 1, n * 3, n ^ 5, n - 7, n & 8)",
		},
		"six arguments by a pointer": {
			"static long f(long a, long b, long c, long d, long e, long g) { return (a * b + c * d) ^ (e * g); }\n" +
				"static long h(long a, long b, long c, long d, long e, long g) { return a - b - c - d - e - g; }\n" +
				"static long (*const list[])(long, long, long, long, long, long) = { f, h };\n",
			"list[n & 1](n, n + 1, n * 3, n ^ 5, n - 7, n & 8)",
		},
		"a wide result": {noinline + "__int128 f(long a) { return ((__int128)a << 70) + a; }\n", "(long)(f(n) >> 3)"},
		"a struct as result": {
			"struct two { long a, b; };\n" + noinline + "struct two f(long a) { return (struct two){ a, a * 3 }; }\n", "f(n).a ^ f(n + 1).b",
		},
		"a struct as argument": {
			"struct three { long a, b, c; };\n" + noinline + "long f(struct three s) { return s.a * s.b - s.c; }\n",
			"f((struct three){ n, n + 1, n * 5 })",
		},
	} {
		t.Run(name, func(t *testing.T) {
			load(t, build(t, lambdaWith(t, "name: probe\ntargets: [nic]\n", "#include \"lambda.h\"\n"+tc.functions+
				"int probe(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\nlong n = match_data->payload_len;\n"+
				"return "+tc.use+" ? 1 : 2;\n}\n")))
		})
	}
}

func TestBuildMakesASharedObject(t *testing.T) {
	a := build(t, "testdata/flip")
	file, err := elf.NewFile(bytes.NewReader(a.Native))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == "lambda_host_run" && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			return
		}
	}
	t.Errorf("no lambda_host_run in %v", symbols)
}

func TestBuildDescribesMemory(t *testing.T) {
	m := build(t, "testdata/assemble").Manifest
	// Four messages (three, rounded up) of 32 KiB and a window, four places of replies, one kept counter, and the SDK's own
	// workspace of 260 bytes; each object in whole words.
	const messages, keep, workspace = (4*(32<<10+api.RPCMaxPayload) + 4*4 + 7) &^ 7, 8, 264
	var names []string
	for _, object := range m.Maps {
		names = append(names, object.Name)
	}
	if want := []string{".data.keep", ".data.messages", "lambda_workspaces"}; m.Memory != messages+keep+workspace || !slices.Equal(names, want) {
		t.Errorf("got %d bytes in %+v, want %d", m.Memory, m.Maps, messages+keep+workspace)
	}
	if !strings.Contains(m.Compiler, "clang version 19") {
		t.Errorf("compiler %q", m.Compiler)
	}
}

func TestBuildIsReproducible(t *testing.T) {
	source := "#include \"lambda.h\"\nint probe" + body + " { return RETURN_DROP; }\n"
	if a, b := build(t, lambda(t, source)), build(t, lambda(t, source)); a.Digest != b.Digest {
		t.Errorf("%s and %s", a.Digest, b.Digest)
	}
}

func TestBuildFindsItsWorkAgain(t *testing.T) {
	store, err := artifact.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := lambda(t, "#include \"lambda.h\"\nint probe"+body+" { int unused; return RETURN_DROP; }\n")
	compiled := 0
	opts := Options{Store: store, Warn: func(Diagnostic) { compiled++ }} // only a compilation warns
	first, err := Build(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	after := compiled
	again, err := Build(t.Context(), dir, opts)
	if err != nil || again.Digest != first.Digest || after == 0 || compiled != after {
		t.Errorf("got %v, %v; %d warnings, then %d", again, err, after, compiled)
	}
	if err := os.WriteFile(filepath.Join(dir, "probe.c"), []byte("#include \"lambda.h\"\nint probe"+body+" { return RETURN_KEEP; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := Build(t.Context(), dir, opts); err != nil || changed.Digest == first.Digest {
		t.Errorf("changed source: got %v, %v", changed, err)
	}
}

// A warning that both targets give comes once.
func TestWarningsComeOnce(t *testing.T) {
	source := "#include \"lambda.h\"\nint probe" + body + "\n{\n\tuint8_t a = 300;\n\treturn lambda_fail(headers, a);\n}\n"
	dir := lambdaWith(t, "name: probe\ntargets: [nic, process]\n", source)
	var said []string
	if _, err := Build(t.Context(), dir, Options{Warn: func(d Diagnostic) { said = append(said, d.String()) }}); err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "probe.c:4:14: warning: ") {
		t.Errorf("%d warnings:\n%s", len(said), strings.Join(said, "\n"))
	}
}

func TestErrorsCarryTheAuthorsPlace(t *testing.T) {
	const include = "#include \"lambda.h\"\n"
	for name, tc := range map[string]struct {
		source string
		want   Diagnostic
	}{
		"syntax":          {include + "int probe" + body + "\n{\n\treturn 0\n}\n", Diagnostic{File: "probe.c", Line: 4, Column: 10, Message: "expected ';' after return statement"}},
		"unknown name":    {include + "int probe" + body + "\n{\n\treturn nothing;\n}\n", Diagnostic{File: "probe.c", Line: 4, Column: 9, Message: "use of undeclared identifier 'nothing'"}},
		"no such header":  {"#include \"nothing.h\"\n", Diagnostic{File: "probe.c", Line: 1, Column: 10, Message: "'nothing.h' file not found"}},
		"no entry":        {include + "int prob" + body + " { return 0; }\n", Diagnostic{File: "probe.c", Line: 1, Column: 1, Message: "int probe(EXTRACTED_HEADERS_T *, MATCH_DATA_T *) is not defined: it is the entry in lambda.yml"}},
		"wrong signature": {include + "int probe(void) { return 0; }\n", Diagnostic{File: "probe.c", Line: 2, Column: 5, Message: "conflicting types for 'probe'"}},
		"unknown call":    {include + "int probe" + body + " { return system(\"id\"); }\n", Diagnostic{File: "probe.c", Line: 2, Column: 76, Message: "call to undeclared function 'system'"}},
		"open comment":    {include + "int probe" + body + " { return 0; }\n/* \n", Diagnostic{File: "probe.c", Line: 3, Column: 1, Message: "unterminated /* comment"}},
		"open condition":  {include + "#if 0\n", Diagnostic{File: "probe.c", Line: 2, Column: 2, Message: "unterminated conditional directive"}},
		"status of HTTP":  {include + "int probe" + body + "\n{\n\treturn lambda_fail(headers, 429);\n}\n", Diagnostic{File: "probe.c", Line: 4, Column: 33, Message: "a status is 0 to 255: LN_STATUS_HTTP(429) is"}},
		"not a failure":   {include + "int probe" + body + "\n{\n\treturn lambda_fail(headers, LN_STATUS_HTTP(204));\n}\n", Diagnostic{File: "probe.c", Line: 4, Column: 30, Message: "LN_STATUS_HTTP() takes 400 to 555"}},
		"SERVICE unknown": {include + "int probe" + body + "\n{\n\treturn SERVICE(db);\n}\n", Diagnostic{File: "probe.c", Line: 4, Column: 9, Message: "use of undeclared identifier 'SERVICE_db': services in lambda.yml has no db"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(t.Context(), lambda(t, tc.source), Options{})
			var failed *Error
			if !errors.As(err, &failed) {
				t.Fatalf("got %v", err)
			}
			got := failed.Diagnostics[0]
			if got.File != tc.want.File || got.Line != tc.want.Line || got.Column != tc.want.Column ||
				!strings.HasPrefix(got.Message, tc.want.Message) || got.Severity != "error" {
				t.Errorf("got  %v\nwant %v", got, tc.want)
			}
			if strings.Contains(err.Error(), unitFile) || strings.Contains(err.Error(), lambdaDir+"/") {
				t.Errorf("a path of the sandbox shows:\n%v", err)
			}
		})
	}
}

// An error of LLVM's code generator is reported once, at the author's line, and not in its words.
func TestBackendErrorsAreTranslated(t *testing.T) {
	const include, noinline = "#include \"lambda.h\"\n", "static __attribute__((noinline)) long "
	for name, tc := range map[string]struct {
		source, want string
		line         int
	}{
		"stack": {include + "int probe" + body + "\n{\nuint8_t a[600] = { 0 };\nbpf_xdp_load_bytes(headers->ctx, match_data->payload_len, a, 600);\n" +
			"return a[0];\n}\n", "more than the 512 bytes of stack", 6},
		"atomic operation": {include + "static unsigned n;\n" +
			"int probe" + body + "\n{\nreturn __atomic_fetch_nand(&n, 3, 0);\n}\n", "an atomic operation that BPF has not", 5},
		"variable arguments": {include + noinline + "f(int n, ...)\n{\n__builtin_va_list l;\n__builtin_va_start(l, n);\nreturn __builtin_va_arg(l, int) + n;\n}\nint probe" + body +
			" { return f(match_data->payload_len, 3) ? 1 : 2; }\n", "variable number of arguments", 8},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(t.Context(), lambdaWith(t, "name: probe\ntargets: [nic]\n", tc.source), Options{})
			var failed *Error
			if !errors.As(err, &failed) {
				t.Fatalf("got %v", err)
			}
			d := failed.Diagnostics[0]
			if len(failed.Diagnostics) != 1 || d.File != "probe.c" || d.Line != tc.line || !strings.Contains(d.Message, tc.want) {
				t.Errorf("got %v, want one of line %d that says %q", err, tc.line, tc.want)
			}
		})
	}
}

func TestBuildRefuses(t *testing.T) {
	const include = "#include \"lambda.h\"\n"
	const migrated = "LAMBDA_MIGRATED int migrated;\n"
	entry := func(statements string) string {
		return include + "int probe" + body + " { " + statements + " return RETURN_DROP; }\n"
	}
	for name, tc := range map[string]struct {
		spec, source string
		is           error
		want         string
	}{
		"too much memory":          {"limits: {memory: 64KiB}\n", include + "uint8_t table[65536];\nint probe" + body + " { return table[match_data->room & 0xffff]; }\n", sandbox.ErrLimit, "limits.memory allows 65536: raise it (the largest: table 65536"},
		"more than there may be":   {"message: {mode: assemble, max: 16MiB}\n", entry(""), sandbox.ErrLimit, "limits.memory allows 268435456: that is the most, so make them smaller, or lower message.max and"},
		"kernel memory":            {"", entry("char c; if (!bpf_probe_read_kernel(&c, 1, (void *)match_data->request)) return c;"), ErrForbidden, "probe.c:2: in"},
		"redirect":                 {"", entry("return bpf_redirect(1, 0);"), ErrForbidden, "bpf_redirect"},
		"may_goto":                 {"", entry(`asm volatile goto(".byte 0xe5; .byte 0; .short 0; .long 0" :::: out); out:`), ErrForbidden, "may_goto"},
		"kernel variable":          {"", include + "extern const int bpf_prog_active;\nint probe" + body + " { return *(volatile int *)&bpf_prog_active; }\n", ErrForbidden, "bpf_prog_active is declared"},
		"pinned map":               {"", include + "struct { __uint(type, BPF_MAP_TYPE_ARRAY); __uint(max_entries, 1); __type(key, int); __type(value, int); __uint(pinning, 1); } theirs SEC(\".maps\");\nint probe" + body + " { int k = 0; return !bpf_map_lookup_elem(&theirs, &k); }\n", ErrForbidden, "pinned"},
		"program array":            {"", include + "struct { __uint(type, BPF_MAP_TYPE_PROG_ARRAY); __uint(max_entries, 1); __type(key, int); __type(value, int); } jump SEC(\".maps\");\nint probe" + body + " { int k = 0; return !bpf_map_lookup_elem(&jump, &k); }\n", ErrForbidden, "ProgramArray"},
		"second program":           {"", entry("") + "SEC(\"xdp\") int other(struct xdp_md *ctx) { return 2; }\n", ErrForbidden, "a program \"other\""},
		"second program's section": {"", entry("") + "SEC(\"xdp\") int lambda_migrate(struct xdp_md *ctx) { return 2; }\n", ErrForbidden, "in section \"xdp\""},
		"migration that redirects": {"", include + migrated + "LAMBDA_MIGRATE(int, old) { migrated = *old + bpf_redirect(1, 0); }\n" + entry(""), ErrForbidden, "bpf_redirect"},
		"migration that loops":     {"", include + migrated + "static long step(__u32 i, void *c) { return 0; }\nLAMBDA_MIGRATE(int, old) { bpf_loop(1 << 23, step, 0, 0); migrated = *old; }\n" + entry(""), ErrForbidden, "bpf_loop"},
		"migration of a request":   {"", include + migrated + "LAMBDA_MIGRATE(int, old) { int k = 0; migrated = !bpf_map_lookup_elem(&ln_requests, &k); }\n" + entry(""), ErrForbidden, "foreign object"},
		"the past in a request":    {"", include + migrated + "LAMBDA_MIGRATE(int, old) { migrated = *old; }\n" + entry("lambda_migrate_old++;"), ErrForbidden, "foreign object"},
		"two migrated objects":     {"", include + migrated + "LAMBDA_MIGRATED int other;\n" + entry("migrated++; other++;"), ErrForbidden, "make them one struct"},
		// A 16-byte load of the map with file descriptor 5 (BPF_LD | BPF_IMM | BPF_DW, BPF_PSEUDO_MAP_FD).
		"file descriptor": {"", entry(`asm volatile(".byte 0x18, 0x11, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0" ::: "r1");`), ErrForbidden, "foreign object"},
		// The same with BPF_PSEUDO_BTF_ID: the address of a variable of the kernel.
		"kernel address": {"", entry(`asm volatile(".byte 0x18, 0x31, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0" ::: "r1");`), ErrForbidden, "foreign object"},
		"no spec":        {"-", "", ErrSource, ""},
		"no source":      {"source: other.c\n", entry(""), ErrSource, "other.c"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := lambdaWith(t, "name: probe\ntargets: [nic]\n"+strings.TrimPrefix(tc.spec, "-"), tc.source)
			if tc.spec == "-" {
				if err := os.Remove(filepath.Join(dir, api.SpecFile)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Build(t.Context(), dir, Options{})
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The defaults of mode assemble work together, also if recursion takes its share of the memory.
func TestBuildAssemblesByDefault(t *testing.T) {
	const source = "#include \"lambda.h\"\nstatic uint8_t table[700 << 10];\n" +
		"static uint32_t sum(uint32_t n) { return n < 2 ? n : sum(n - 1) + sum(n - 2); }\n" +
		"int probe" + body + " { table[match_data->room % sizeof(table)]++; return sum(match_data->payload_len) ? RETURN_DROP : lambda_reply(headers, 0, 1); }\n"
	for _, message := range []string{"{mode: assemble}", "{mode: assemble, max: 1MiB, in_flight: 4, regions: 4}", "{mode: assemble, max: 1KiB, in_flight: 5}"} {
		a, err := Build(t.Context(), lambdaWith(t, "name: probe\nlimits: {time: 10ms}\nmessage: "+message+"\n", source), Options{})
		if err != nil {
			t.Errorf("%s: %v", message, err)
		} else if _, err := a.Object(api.TargetNIC); err != nil {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// What the compiler refuses for the NIC is built for the process, with the reason. If no process may run it, that is an error.
func TestRefusedForTheNICAlone(t *testing.T) {
	store, err := artifact.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	source := "#include \"lambda.h\"\n__attribute__((noinline)) static int sum(int n, ...)\n{\n\t__builtin_va_list list;\n\t__builtin_va_start(list, n);\n" +
		"\treturn __builtin_va_arg(list, int) + n;\n}\nLAMBDA_KEPT int kept;\nint probe" + body + " { return kept = sum(1, kept); }\n"
	dir := lambda(t, source)
	for range 2 { // the second time from the store
		a, err := Build(t.Context(), dir, Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		object, err := a.Object(api.TargetNIC)
		if !errors.Is(err, artifact.ErrNoObject) || object != nil || !strings.Contains(err.Error(), "probe.c:9:") {
			t.Errorf("for the NIC: %d bytes, %v", len(object), err)
		}
		if object, err = a.Object(api.TargetProcess); err != nil || len(object) == 0 || a.Manifest.Layouts.Kept == "" || a.Manifest.Maps != nil {
			t.Errorf("for the process: %d bytes, %v, %+v", len(object), err, a.Manifest)
		}
	}
	var refused *Error
	for name, dir := range map[string]string{
		"for the NIC alone": lambdaWith(t, "name: probe\ntargets: [nic]\n", source),
		"no C":              lambda(t, source+"int more(void) { return 1 }\n"),
	} {
		if _, err := Build(t.Context(), dir, Options{}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A name that needs a key of the spec, or that does not exist, is reported with the remedy.
func TestMissingNamesSayTheRemedy(t *testing.T) {
	for name, tc := range map[string]struct{ source, want string }{
		"a header":  {"\n#include <stdio.h>\n", "probe.c:3:1: error: 'gnu/stubs-32.h' file not found: a header of the C library that is not there on the NIC, which has <string.h>"},
		"printing":  {"int f(void) { return printf(\"\"); }\n", "nowhere to print to"},
		"a trace":   {"int f(int i) { return bpf_printk(\"%d\", i); }\n", "nowhere to print to"},
		"declared":  {"int printf(const char *, ...);\nint f(void) { return printf(\"\"); }\n", "nowhere to print to"},
		"a number":  {"int f(char *s) { return snprintf(s, 4, \"%d\", 5); }\n", "lambda_put_number()"},
		"a message": {"int f(void *h, void *m) { return !lambda_message(h, m); }\n", "message: { mode: assemble }"},
		"a service": {"int f(void) { return SERVICE(nobody); }\n", "services in lambda.yml has no nobody"},
	} {
		_, err := Build(t.Context(), lambdaWith(t, "name: probe\ntargets: [nic]\n", "#include \"lambda.h\"\n"+tc.source+"int probe"+body+" { return RETURN_DROP; }\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// LLVM's messages when it gives up are put in the author's terms, also without a line.
func TestGivingUpIsTranslated(t *testing.T) {
	list := parseDiagnostics("fatal error: error in backend: Branch target out of insn range\nclang frontend command failed\n")
	if len(list) != 1 || !strings.Contains(list[0].Message, "32,767 instructions") {
		t.Errorf("got %v", list)
	}
}

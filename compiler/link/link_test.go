package link_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/fused"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/link"
)

func sources(t *testing.T) [][]byte {
	t.Helper()
	list, err := fused.Sources("../../lambdas")
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// pack makes a source of a lambda's C and additional lines of its spec.
func pack(t *testing.T, name, text, spec string) []byte {
	t.Helper()
	dir := t.TempDir()
	for file, data := range map[string]string{
		name + ".c": "#include \"lambda.h\"\n" + text, api.SpecFile: "name: " + name + "\ntargets: [nic]\n" + spec,
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := compiler.PackSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func entry(name, body string) string {
	return "int " + name + "(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n" + body + "}\n"
}

// The four lambdas of the λ-NIC paper's figure 9, which became 9.56 % smaller there. Only the sum of the steps is sure to be smaller:
// without the look-ups of its tables, a program has more live values, and so more stores.
func TestFigure9(t *testing.T) {
	steps, err := link.Steps(t.Context(), sources(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(steps)
	first, last := steps[0].Instructions, steps[len(steps)-1].Instructions
	if last*100 > first*75 {
		t.Errorf("%d of %d instructions are left: more than 75 %%", last, first)
	}
}

// Equal names and kept objects of two members stay separate.
func TestMembersKeepTheirOwn(t *testing.T) {
	body := "\tseen++;\n\treturn lambda_reply(headers, 0, %);\n"
	text := "LAMBDA_KEPT uint64_t seen;\n"
	var members [][]byte
	for name, size := range map[string]string{"one": "1", "two": "2"} {
		members = append(members, pack(t, name, text+entry(name, strings.Replace(body, "%", size, 1)), ""))
	}
	p, err := link.Fuse(t.Context(), members)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(p.BPF))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one__seen", "two__seen", link.MembersVariable} {
		if spec.Variables[want] == nil {
			t.Errorf("there is no variable %s", want)
		}
	}
	one, two := p.Contents.Members["one"].Kept, p.Contents.Members["two"].Kept
	if one == "" || one != two {
		t.Errorf("equal objects are kept under layouts %q and %q", one, two)
	}
	if size := spec.Variables[link.MembersVariable].Size(); size != 8 {
		t.Errorf("%d bytes of workload IDs for two members", size)
	}
}

// Recursion in a member is as deep as in the lambda alone: its frames get a quarter of limits.memory, which is 1 MiB by default.
func TestMembersRecurse(t *testing.T) {
	deep := "static int down(int n) { return n ? down(n - 1) * 3 + n : 1; }\n" + entry("deep", "\treturn lambda_reply(headers, 0, down(match_data->payload_len) & 7);\n")
	flat := entry("flat", "\treturn lambda_reply(headers, 0, 1);\n")
	p, err := link.Fuse(t.Context(), [][]byte{pack(t, "deep", deep, ""), pack(t, "flat", flat, "")})
	if err != nil {
		t.Fatal(err)
	}
	if p.Contents.Memory < 256<<10 {
		t.Errorf("all objects take %d bytes, want 256 KiB of frames among them", p.Contents.Memory)
	}
}

// A long function that two members call is there once, even if its arguments differ.
func TestCommonLogicIsShared(t *testing.T) {
	var b strings.Builder
	b.WriteString("static uint32_t mix(uint32_t x, uint32_t y)\n{\n")
	for i := range 60 {
		fmt.Fprintf(&b, "\tx = (x ^ x >> %d) * (y + %d);\n", 1+i%31, 2*i+1)
	}
	b.WriteString("\treturn x;\n}\n")
	// They differ before and after the call, so that they are not merged.
	one := pack(t, "one", b.String()+entry("one", "\treturn lambda_reply(headers, 0, mix(match_data->method, match_data->room) & 7);\n"), "")
	two := pack(t, "two", b.String()+entry("two", "\tlambda_status(headers, mix(match_data->payload_len * 5, match_data->offset));\n\treturn RETURN_DROP;\n"), "")
	var sizes []int
	for _, members := range [][][]byte{{one}, {one, two}} {
		p, err := link.Fuse(t.Context(), members)
		if err != nil {
			t.Fatal(err)
		}
		n, err := p.Instructions()
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
	}
	if sizes[1]*4 > sizes[0]*5 {
		t.Errorf("%d instructions for both, %d for one alone", sizes[1], sizes[0])
	}
}

// Functions that call each other and pass on pointers into the stack are not inlined into each other repeatedly: there would be a copy of
// each for every call path to it.
func TestRecursionIsNotCopied(t *testing.T) {
	for _, linkage := range []string{"static ", ""} {
		text := "struct at { uint32_t left, seen; };\n" + linkage + "int level0(struct at *a);\n"
		for i := 5; i >= 0; i-- {
			text += fmt.Sprintf("%sint level%d(struct at *a)\n{\n\tint v = a->seen++;\n\tif (!a->left)\n\t\treturn %d;\n\ta->left--;\n", linkage, i, i)
			for k := range 3 {
				text += fmt.Sprintf("\tv = v * %d ^ level%d(a);\n", 2*k+3, (i+1)%6)
			}
			text += "\treturn v;\n}\n"
		}
		member := pack(t, "levels", text+entry("levels", "\tstruct at a = { match_data->payload_len, 0 };\n\treturn lambda_reply(headers, 0, level0(&a) & 7);\n"), "")
		alone, err := compiler.BuildSource(t.Context(), member, compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(alone.BPF))
		if err != nil {
			t.Fatal(err)
		}
		p, err := link.Fuse(t.Context(), [][]byte{member, pack(t, "flat", entry("flat", "\treturn lambda_reply(headers, 0, 1);\n"), "")})
		if err != nil {
			t.Fatal(err)
		}
		n, err := p.Instructions()
		if err != nil {
			t.Fatal(err)
		}
		if before := len(spec.Programs[compiler.Program].Instructions); n > 2*before {
			t.Errorf("linkage %q: %d instructions in a program of two, %d alone", linkage, n, before)
		}
	}
}

// Members that are too long for one program are refused in a line that says what to do.
func TestTooLongToBeFused(t *testing.T) {
	var members [][]byte
	for i, name := range []string{"one", "two"} {
		step := fmt.Sprintf("\tx = (x ^ x >> %d) * (match_data->room + %d);\n", 5+i, 3+i)
		members = append(members, pack(t, name, entry(name, "\tuint32_t x = match_data->payload_len;\n"+strings.Repeat(step, 6000+i)+
			"\treturn lambda_reply(headers, 0, x & 7);\n"), ""))
	}
	_, err := link.Fuse(t.Context(), members)
	if !errors.Is(err, link.ErrMember) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"one, two", "32,767 instructions", "deploy them one by one"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %v", err)
	}
}

// Equal builds are equal, so that an artifact's name stands for what it does.
func TestFuseIsDeterministic(t *testing.T) {
	members := sources(t)[1:3]
	a, errA := link.Fuse(t.Context(), members)
	b, errB := link.Fuse(t.Context(), members)
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.BPF, b.BPF) {
		t.Error("two builds differ")
	}
}

func TestNotToBeFused(t *testing.T) {
	good := pack(t, "good", entry("good", "\treturn RETURN_DROP;\n"), "")
	migrated := pack(t, "migrated", "LAMBDA_MIGRATED uint64_t x;\nLAMBDA_MIGRATE(uint32_t, old)\n{\n\tx = *old;\n}\n"+
		entry("migrated", "\treturn x ? RETURN_DROP : RETURN_FAULT;\n"), "")
	for what, c := range map[string]struct {
		members [][]byte
		want    error
	}{
		"none":              {nil, link.ErrMember},
		"too many":          {slices.Repeat([][]byte{good}, link.MaxMembers+1), link.ErrMember},
		"two of one name":   {[][]byte{good, good}, link.ErrMember},
		"one that migrates": {[][]byte{good, migrated}, link.ErrMember},
	} {
		if _, err := link.Fuse(t.Context(), c.members); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	wrong := pack(t, "wrong", entry("wrong", "\treturn nothing;\n"), "")
	var at *compiler.Error
	if _, err := link.Fuse(t.Context(), [][]byte{good, wrong}); !errors.As(err, &at) || at.Diagnostics[0].File != "wrong.c" {
		t.Errorf("an error in the source: %v", err)
	}
}

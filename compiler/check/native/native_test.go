package native

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// link makes a shared library of C, with the options that the compiler uses.
func link(t testing.TB, source string, options ...string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "x.c"), filepath.Join(dir, "x.so")
	if err := os.WriteFile(in, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-O2", "-fPIC", "-shared", "-fuse-ld=lld", "-o", out, in}, options...)
	if text, err := exec.Command("clang-19", args...).CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, text)
	}
	object, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

const plain = "#include <string.h>\nint x[99], *y = x; void f(void *p, int n) { memcpy(p, y, n); }\n"

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		source  string
		options []string
		want    string
	}{
		"plain":          {plain, []string{"-nostdlib", "-lc"}, ""},
		"start files":    {plain, nil, "-nostdlib"},
		"constructor":    {plain + "__attribute__((constructor)) static void c(void) { for (volatile int i = 1; i;) ; }", []string{"-nostdlib", "-lc"}, "constructor"},
		"destructor":     {plain + "__attribute__((destructor)) static void d(void) { x[0]++; }", []string{"-nostdlib", "-lc"}, "destructor"},
		"_init":          {plain + "void _init(void) { x[0]++; }", []string{"-nostdlib", "-lc"}, "_init"},
		"init by option": {plain, []string{"-nostdlib", "-lc", "-Wl,-init=f"}, "_init"},
		"fini by option": {plain, []string{"-nostdlib", "-lc", "-Wl,-fini=f"}, "_fini"},
		"ifunc":          {"static int a(void) { return 1; } static void *r(void) { return a; } int g(void) __attribute__((ifunc(\"r\")));", []string{"-nostdlib"}, "ifunc"},
		"hidden ifunc": {
			"static int a(void) { return 1; } volatile int v; static void *r(void) { return v ? a : 0; }" +
				"__attribute__((ifunc(\"r\"), visibility(\"hidden\"))) int g(void); int h(void) { return g(); }",
			[]string{"-nostdlib"}, "ifunc",
		},
		"other library": {plain + "double sin(double); double g(double v) { return sin(v); }", []string{"-nostdlib", "-lm"}, "libm"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(link(t, test.source, test.options...))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case test.want != "" && (!errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want one about %s", err, test.want)
			}
		})
	}
}

// Headers that contradict what the dynamic linker reads hide nothing.
func TestCheckLies(t *testing.T) {
	object := link(t, plain, "-nostdlib", "-lc")
	file, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	table := file.SectionByType(elf.SHT_DYNSYM)
	var function uint64 // its offset in the file
	for i, s := range symbols {
		if s.Name == "f" {
			function = table.Offset + uint64(i+1)*elf.Sym64Size
		}
	}
	header := func(index uint64) uint64 { // of a segment
		return binary.LittleEndian.Uint64(object[32:]) + index*56
	}
	rela := file.Section(".rela.dyn").Offset
	dynamic := file.Section(".dynamic")
	for name, test := range map[string]struct {
		patch func(b []byte)
		want  string
	}{
		"nothing": {func([]byte) {}, ""},
		"a resolver beyond the section of symbols": {func(b []byte) {
			b[function+4] = byte(elf.STB_GLOBAL)<<4 | byte(elf.STT_GNU_IFUNC)
			at := binary.LittleEndian.Uint64(b[40:])
			for i := range file.Sections {
				if file.Sections[i] == table {
					binary.LittleEndian.PutUint64(b[at+uint64(i)*64+32:], elf.Sym64Size)
				}
			}
		}, "ifunc"},
		"two segments in one page": {func(b []byte) {
			for i, p := range file.Progs {
				if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
					binary.LittleEndian.PutUint64(b[header(uint64(i))+16:], 0)
				}
			}
		}, "overlaps"},
		"constants that can be written": {func(b []byte) {
			for i, p := range file.Progs {
				if p.Type == elf.PT_LOAD && p.Vaddr == 0 {
					b[header(uint64(i))+4] |= byte(elf.PF_W)
				}
			}
		}, "not constant"},
		"a relocation of a dynamic tag": {func(b []byte) {
			binary.LittleEndian.PutUint64(b[rela:], dynamic.Addr+8)
		}, "relocation"},
		"no hash table": {func(b []byte) {
			for at := dynamic.Offset; ; at += dynSize {
				if elf.DynTag(binary.LittleEndian.Uint64(b[at:])) == elf.DT_GNU_HASH {
					binary.LittleEndian.PutUint64(b[at:], uint64(elf.DT_DEBUG))
					return
				}
			}
		}, "hash"},
	} {
		t.Run(name, func(t *testing.T) {
			patched := bytes.Clone(object)
			test.patch(patched)
			err := Check(patched)
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, ErrForbidden) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// Reading a foreign shared library never panics.
func FuzzCheck(f *testing.F) {
	object := link(f, plain, "-nostdlib", "-lc")
	f.Add(object)
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add(object[:len(object)/2])
	f.Fuzz(func(_ *testing.T, object []byte) { _ = Check(object) })
}

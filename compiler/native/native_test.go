package native

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// link makes a shared object of C, with the options that the compiler uses.
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

// What reads an object from elsewhere does not fail on any bytes.
func FuzzCheck(f *testing.F) {
	object := link(f, plain, "-nostdlib", "-lc")
	f.Add(object)
	f.Add(bytes.Repeat([]byte{0xff}, 100))
	f.Add(object[:len(object)/2])
	f.Fuzz(func(_ *testing.T, object []byte) { _ = Check(object) })
}

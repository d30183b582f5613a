package compiler

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// nested is an object file whose program takes `outer` bytes of stack and calls a function that takes `inner`.
func nested(t *testing.T, outer, inner int) []byte {
	t.Helper()
	clang := exec.Command("clang-19", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-x", "c", "-", "-c", "-o", "-")
	clang.Stdin = strings.NewReader(fmt.Sprintf(`
#define USE(a) asm volatile("" : : "r"(a) : "memory")
__attribute__((noinline)) static int leaf(int n) { char a[%d]; USE(a); return a[0] + n; }
__attribute__((section("xdp"))) int lambda(void *ctx) { char a[%d]; USE(a); return leaf(a[0]); }
`, inner, outer))
	object, err := clang.Output()
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// The limit holds for a function and its callees together.
func TestExceedsStack(t *testing.T) {
	for _, c := range []struct {
		outer, inner int
		want         bool
	}{{384, 96, false}, {384, 160, true}, {96, 480, true}, {480, 8, false}} {
		if got := exceedsStack(nested(t, c.outer, c.inner), nil); got != c.want {
			t.Errorf("%d bytes and %d in a call: %v, want %v", c.outer, c.inner, got, c.want)
		}
	}
	if !exceedsStack(nil, &Error{Diagnostics: []Diagnostic{{Message: diagnose.Compiler(diagnose.StackLimit)}}}) ||
		!exceedsStack(nil, errors.New("/in.bc: "+diagnose.StackLimit)) || exceedsStack(nil, errors.New("another")) {
		t.Error("an error is not taken for what it is")
	}
}

// A program is compiled with the first flags that make it fit. If none do, the first result stands.
func TestFitStack(t *testing.T) {
	tooDeep := errors.New(diagnose.StackLimit)
	for fits := range len(stackFlags) + 1 {
		tried := 0
		_, said, err := fitStack(func(flags []string) ([]byte, string, error) {
			if got, want := fmt.Sprint(flags), fmt.Sprint(stackFlags[tried]); got != want {
				t.Errorf("flags %v, want %v", got, want)
			}
			tried++
			if tried > fits {
				return nil, fmt.Sprint(tried), nil
			}
			return nil, fmt.Sprint(tried), tooDeep
		})
		switch {
		case fits < len(stackFlags) && (err != nil || said != fmt.Sprint(fits+1)):
			t.Errorf("fits after %d: got the result of %s, %v", fits, said, err)
		case fits == len(stackFlags) && (err == nil || said != "1"):
			t.Errorf("never fits: got the result of %s, %v", said, err)
		}
	}
}

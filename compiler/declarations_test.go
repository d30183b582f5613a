package compiler

import (
	"fmt"
	"slices"
	"testing"
)

// Strings, bodies of functions and foreign headers hold no declarations of the author's.
func TestFindDeclarations(t *testing.T) {
	const text = `# 1 "/unit.c"
asm("ours");
# 1 "/sdk/lambda.h" 1
asm("the SDK's");
# 2 "/unit.c" 2
# 1 "/lambda/a.c" 1
asm("2: } ");
int f(int alias) { asm("in a function"); asm volatile("" : "+r"(alias)); return alias; }
struct ifunc { char asm_[2]; } renamed asm("label");
const char *text = "asm(\"\"); __attribute__((alias(\"f\")))"; char quote = '"', brace = '{';
__extension__ __asm__("5") ; int g(int)
  __attribute__((unused, __alias__("f")));
# 3 "/lambda/b.h" 1
int (*h(void))(void) __attribute__((noinline)); int i(void) __attribute((ifunc("h"))); int alias, ifunc;
int j(void) { return 1; } __asm("after a function");
# 7 "/lambda/a.c" 2
int k;
asm volatile("last");
`
	var got []string
	for _, d := range findDeclarations(text) {
		got = append(got, fmt.Sprintf("%s:%d: %s", d.File, d.Line, d.Message))
	}
	assembly, name := fileAssembly+": "+unplacedRemedies[fileAssembly], otherName+": "+unplacedRemedies[otherName]
	want := []string{
		"a.c:1: " + assembly, "a.c:5: " + assembly, "a.c:6: " + name, "b.h:3: " + name, "b.h:4: " + assembly, "a.c:8: " + assembly,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

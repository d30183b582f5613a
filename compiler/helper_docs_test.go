package compiler

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/compiler/check/helper"
	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// The guide lists exactly the helpers that a lambda may call.
func TestHelpersAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### The kernel's functions\n")
	section, _, ends := strings.Cut(section, "may be called")
	if !found || !ends {
		t.Fatal("docs/language.md has no section on the kernel's functions")
	}
	documented := regexp.MustCompile(`bpf_\w+`).FindAllString(section, -1)
	var allowed []string
	for fn, h := range helper.All {
		if !h.Stage {
			allowed = append(allowed, diagnose.Helper(fn))
		}
	}
	slices.Sort(documented)
	slices.Sort(allowed)
	if !slices.Equal(documented, allowed) {
		t.Errorf("documented are\n%v, allowed\n%v", documented, allowed)
	}
}

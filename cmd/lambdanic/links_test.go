package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The installed binary links no test rig, and no benchmark for contributors.
func TestLinksNoTestRig(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("list what lambdanic links: %v", err)
	}
	const module = "github.com/lambdanic/lambdanic/"
	all := strings.Fields(string(out))
	if len(all) < 100 {
		t.Fatalf("%d packages cannot be all", len(all))
	}
	for _, pkg := range all {
		own, isOwn := strings.CutPrefix(pkg, module)
		switch {
		case isOwn && (strings.HasPrefix(own, "test/") || strings.HasPrefix(own, "bench/lab") || strings.HasPrefix(own, "compiler/corpus")),
			pkg == "testing", strings.HasPrefix(pkg, "testing/"), strings.HasSuffix(pkg, "/httptest"):
			t.Errorf("lambdanic links %s", pkg)
		}
	}
}

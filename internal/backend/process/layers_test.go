package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The files of lambda-host form layers: their call graph has no cycle.
func TestHostHasNoCircles(t *testing.T) {
	uses := hostUses(t)
	for file := range uses {
		if path := pathTo(uses, file, file, map[string]bool{}); path != nil {
			t.Errorf("host/%s.c calls itself: %s", file, strings.Join(append([]string{file}, path...), " -> "))
		}
	}
	if !slices.Contains(uses["server"], "rpc") {
		t.Errorf("server uses %v, and calls rpc_receive(): this test sees nothing", uses["server"])
	}
}

// pathTo is a path from one file to another, nil for none.
func pathTo(uses map[string][]string, from, to string, seen map[string]bool) []string {
	for _, next := range uses[from] {
		if next == to {
			return []string{next}
		}
		if seen[next] {
			continue
		}
		seen[next] = true
		if path := pathTo(uses, next, to, seen); path != nil {
			return append([]string{next}, path...)
		}
	}
	return nil
}

// hostUses says which files define the functions that a file of lambda-host calls, by the symbols of its object file.
func hostUses(t *testing.T) map[string][]string {
	t.Helper()
	sources, err := filepath.Glob("../../../host/*.c")
	if err != nil {
		t.Fatal(err)
	}
	home, wants := map[string]string{}, map[string][]string{}
	for _, source := range sources {
		file := strings.TrimSuffix(filepath.Base(source), ".c")
		if file == "pacer" || file == "late" || file == "fuzz" { // of other programs
			continue
		}
		for _, s := range symbols(t, source) {
			switch {
			case s.Section == elf.SHN_UNDEF:
				wants[file] = append(wants[file], s.Name)
			case elf.ST_BIND(s.Info) == elf.STB_GLOBAL && elf.ST_TYPE(s.Info) == elf.STT_FUNC:
				home[s.Name] = file
			}
		}
	}
	uses := map[string][]string{}
	for file, names := range wants {
		for _, name := range names {
			if at, ours := home[name]; ours && !slices.Contains(uses[file], at) {
				uses[file] = append(uses[file], at)
			}
		}
	}
	return uses
}

func symbols(t *testing.T, source string) []elf.Symbol {
	t.Helper()
	out := filepath.Join(t.TempDir(), "object.o")
	compile := exec.CommandContext(t.Context(), "clang-19", "-std=gnu11", "-D_GNU_SOURCE", "-iquote", "../../../bpf", "-iquote", "../../../sdk",
		"-c", "-o", out, source)
	var said bytes.Buffer
	compile.Stderr = &said
	if err := compile.Run(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, &said)
	}
	object, err := elf.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer object.Close()
	list, err := object.Symbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		t.Fatal(err)
	}
	return list
}

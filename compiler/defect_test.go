package compiler

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

// says is a tool that prints a message and an object, and ends with a status.
func says(tools *toolchain, message string, status int) []string {
	return []string{tools.shell, "-c", fmt.Sprintf("echo %s >&2; echo object; exit %d", shellWords([]string{message}), status)}
}

// If LLVM finds the passes' output broken, the compiler is at fault, whether a tool goes on or not.
func TestBrokenCodeIsADefect(t *testing.T) {
	tools, err := findToolchain()
	if err != nil {
		t.Fatal(err)
	}
	linker, source := &Linker{tools}, []sandbox.File{{Path: lambdaDir + "/probe.c"}}
	for _, c := range []struct {
		message string
		status  int
		defect  bool
	}{
		{"warning: ignoring invalid debug info in arithmetic [-Wbackend-plugin]", 0, true},
		{"warning: ignoring debug info with an invalid version (7) in /in.bc", 0, true},
		{"fatal error: error in backend: Broken module found, compilation aborted!", 1, true},
		{"fatal error: error in backend: Broken function found after pass \"LowerSwitchPass\", compilation aborted!", 1, true},
		{"LLVM ERROR: Broken module found, compilation aborted!", 134, true},
		{"/usr/lib/llvm-19/bin/opt: /in.bc: error: input module is broken!", 1, true},
		{"/lambda/probe.c:1:2: warning: ignoring invalid debug info in my car [-W#warnings]", 0, false},
		{"/lambda/probe.c:1:2: error: Broken module found, compilation aborted!", 1, false},
	} {
		_, _, err := run(t.Context(), tools, says(tools, c.message, c.status), source, api.Spec{Name: "probe", Source: "probe.c"})
		_, fused := linker.run(t.Context(), says(tools, c.message, c.status))
		for _, err := range []error{err, fused} {
			if errors.Is(err, ErrDefect) != c.defect || NodeFailed(err) != c.defect {
				t.Errorf("%q: %v", c.message, err)
			}
			if c.defect && !strings.Contains(err.Error(), kernel.Issues) {
				t.Errorf("%q: where is it reported? %v", c.message, err)
			}
		}
	}
}

// A defect of the compiler is no reason to run a lambda in a process, and nothing is stored.
func TestDefectIsNotKept(t *testing.T) {
	store, err := artifact.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	key, made := digest.FromString("a lambda"), 0
	for range 2 {
		_, err := artifact.Build(store, key, func() (*Artifact, error) {
			made++
			a := &Artifact{Native: []byte("object")}
			return a, fallBack(a, findDefect("warning: ignoring invalid debug info in arithmetic\n"))
		})
		if !errors.Is(err, ErrDefect) {
			t.Errorf("got %v", err)
		}
	}
	if made != 2 {
		t.Errorf("built %d times, want twice", made)
	}
}

// A tool's crash is reported in one line, without a stack trace.
func TestCrashIsOneLine(t *testing.T) {
	tools, err := findToolchain()
	if err != nil {
		t.Fatal(err)
	}
	const dump = "PLEASE submit a bug report\nStack dump:\n0.\tProgram arguments: /usr/lib/llvm-19/bin/clang\n #0 0x0000 main\n"
	for message, want := range map[string]string{
		dump: "error: the compiler gave up with exit status 139",
		"fatal error: error in backend: Branch target out of insn range\n" + dump: "32,767 instructions",
		"LLVM ERROR: out of memory\n" + dump:                                      "error: the compiler gave up with exit status 139",
	} {
		_, err := (&Linker{tools}).run(t.Context(), says(tools, message, 139))
		var failed *Error
		if !errors.As(err, &failed) || !strings.Contains(failed.Faults(), want) {
			t.Fatalf("%q: got %v, want %q", message, err, want)
		}
		for _, leak := range []string{"Stack dump", "PLEASE", "llvm-19", "0x0000"} {
			if strings.Contains(err.Error(), leak) {
				t.Errorf("%q: an error with %q: %v", message, leak, err)
			}
		}
	}
}

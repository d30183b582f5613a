package test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// Every function of the library refuses missing or senseless arguments at once, and a call in flight is still answered.
func TestBadArguments(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	program := driver(t, "arguments") // compiling it may take longer than it runs
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, s.Addr().String()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := map[string]string{"ok": "0", "address": "-5", "argument": "-8"}
	for i, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		what, result, _ := strings.Cut(line, " ")
		if result == "" || result != want[what] {
			t.Errorf("line %d: %q, want %s", i+1, line, want[what])
		}
	}
}

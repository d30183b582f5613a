package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/lambdanic/lambdanic/test/inherited"
)

// Our children do not inherit files that our caller has open.
func TestChildrenInheritNothing(t *testing.T) {
	path := inherited.Open(t)
	if os.Getenv("LAMBDANIC_TEST_CHILDREN") == "" { // not in this process, whose descriptors other tests may want to hand on
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildrenInheritNothing$")
		child.Env = append(os.Environ(), "LAMBDANIC_TEST_CHILDREN=1")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	for _, kept := range []bool{false, true} {
		if kept {
			keepFromChildren()
		}
		child := exec.CommandContext(t.Context(), "cat")
		in, err := child.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if inherited.Has(t, child.Process.Pid, path) == kept {
			t.Errorf("kept from children: %v, and a child has it open: %v", kept, kept)
		}
		_ = in.Close()
		_ = child.Wait()
	}
}

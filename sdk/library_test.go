package sdk_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestLibrary compares the NIC's replacement of the C library with the host's C library.
func TestLibrary(t *testing.T) {
	dir := t.TempDir()
	ours, program := filepath.Join(dir, "library.o"), filepath.Join(dir, "library_test")
	clang(t, "-std=gnu17", "-D__bpf__", "-O2", "-Wall", "-fwrapv", "-ffreestanding", "-I.", "-c", "-o", ours, "testdata/library.c")
	clang(t, "-std=gnu17", "-O2", "-Wall", "-o", program, "testdata/library_test.c", ours, "-lm")
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

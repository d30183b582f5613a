package metering

import (
	"bytes"
	"errors"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// compile makes an object of testdata/loops.c.
func compile(t *testing.T) []byte {
	t.Helper()
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	var stderr bytes.Buffer
	clang := exec.Command("clang-19", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-idirafter", "/usr/include/"+triplet,
		"-c", "testdata/loops.c", "-o", "-")
	clang.Stderr = &stderr
	object, err := clang.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return object
}

func read(t *testing.T, object []byte) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func TestPriceObject(t *testing.T) {
	object := compile(t)
	if _, err := Check(read(t, object)); !errors.Is(err, ErrUnbounded) {
		t.Fatalf("accepted unpriced, or %v", err)
	}
	if err := Price(object); err != nil {
		t.Fatal(err)
	}
	priced := bytes.Clone(object)
	if err := Price(object); err != nil || !bytes.Equal(object, priced) {
		t.Errorf("priced again, it differs, or %v", err)
	}
	verdict, c := run(t, read(t, object), 50*time.Microsecond)
	var inner, outer uint64
	for name, n := range map[string]*uint64{"inner": &inner, "outer": &outer} {
		if err := c.Variables[name].Get(n); err != nil {
			t.Fatal(err)
		}
	}
	// At least the helper's 30 ns for each iteration, and no more than the budget.
	if verdict != 2 || inner == 0 || outer == 0 || (inner+outer)*30 > 50_000 {
		t.Errorf("answered %d, %d and %d times around", verdict, inner, outer)
	}
}

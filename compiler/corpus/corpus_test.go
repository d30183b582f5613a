package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
)

// Under the sanitizers, which stop a program that relies on undefined behaviour.
func TestVectors(t *testing.T) {
	programs, err := Programs()
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) < 40 {
		t.Errorf("the corpus has %d programs", len(programs))
	}
	for _, p := range programs {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			if len(p.Vectors) < 5 {
				t.Errorf("%d vectors", len(p.Vectors))
			}
			replies := runOrdinary(t, p)
			for i, v := range p.Vectors {
				if i >= len(replies) {
					t.Fatalf("ended after %d of %d requests", i, len(p.Vectors))
				}
				if r := replies[i]; r.verdict != 1 || !bytes.Equal(r.payload, v.Out) {
					t.Errorf("vector %d, %.60x: got verdict %d, %.200x, want %.200x", i, []byte(v.In), r.verdict, r.payload, []byte(v.Out))
				}
			}
		})
	}
}

type reply struct {
	verdict int32
	payload []byte
}

// runOrdinary compiles a program with ordinary/ in place of the SDK, and runs it on its requests.
func runOrdinary(t *testing.T, p Program) (replies []reply) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), p.Name)
	build := exec.Command("clang-19", "-std=gnu17", "-O1", "-Wall", "-Wextra", "-Werror", "-fwrapv", "-fsigned-char", "-fno-strict-aliasing",
		"-ffp-contract=off", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-sanitize=alignment", "-Iordinary",
		"-DENTRY="+p.Name, "-o", bin, filepath.Join(p.Name, p.Name+".c"), "ordinary/main.c", "-lm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("compile: %v\n%s", err, out)
	}
	var in, problems bytes.Buffer
	for _, v := range p.Vectors {
		in.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(v.In))))
		in.Write(v.In)
	}
	run := exec.Command(bin)
	run.Stdin, run.Stderr = &in, &problems
	out, err := run.Output()
	if err != nil {
		t.Errorf("run: %v\n%s", err, problems.Bytes())
	}
	for len(out) >= 8 {
		n := binary.LittleEndian.Uint32(out[4:])
		replies = append(replies, reply{int32(binary.LittleEndian.Uint32(out)), out[8 : 8+n]})
		out = out[8+n:]
	}
	if len(out) != 0 {
		t.Error(fmt.Errorf("%d bytes are left over", len(out)))
	}
	return replies
}

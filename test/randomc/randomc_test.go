package randomc

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The sanitizers find nothing undefined in what is written, it ends, and one seed gives one program.
func TestDefined(t *testing.T) {
	seeds := 30
	if testing.Short() {
		seeds = 8
	}
	for seed := range uint64(seeds) {
		source := Generate(seed)
		if Generate(seed) != source {
			t.Fatalf("seed %d gives two programs", seed)
		}
		dir := t.TempDir()
		file, bin := filepath.Join(dir, "p.c"), filepath.Join(dir, "p")
		if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		var outputs [2]string
		for i, flags := range [][]string{{"-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"}, {"-O2"}} {
			args := append(flags, "-std=gnu17", "-w", "-fwrapv", "-fsigned-char", "-fno-strict-aliasing", "-ffp-contract=off",
				"-I../../compiler/corpus/ordinary", "-DENTRY="+Name, "-o", bin, file, "../../compiler/corpus/ordinary/main.c")
			if out, err := exec.Command("clang-19", args...).CombinedOutput(); err != nil {
				t.Fatalf("seed %d: compile: %v\n%s", seed, err, out)
			}
			outputs[i] = run(t, bin, seed)
		}
		if outputs[0] != outputs[1] {
			t.Errorf("seed %d: %x without optimisation, %x with", seed, outputs[0], outputs[1])
		}
	}
}

// run gives what a program answers to its requests.
func run(t *testing.T, bin string, seed uint64) string {
	t.Helper()
	var in, problems bytes.Buffer
	for _, r := range Requests(seed) {
		in.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(r))))
		in.Write(r)
	}
	cmd := exec.CommandContext(t.Context(), bin)
	cmd.Stdin, cmd.Stderr = &in, &problems
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("seed %d: run: %v\n%s", seed, err, problems.Bytes())
	}
	return string(out)
}

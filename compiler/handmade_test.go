package compiler_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/test/packets"
)

const handmadeDir = "testdata/handmade"

// handmadeComment says what must happen to an object file, and what its refusal says.
var handmadeComment = regexp.MustCompile(`(?m)^/\* (?:refused: (.+)|contained) \*/$`)

// readHandmade compiles a source as any compiler would, and returns why it must be refused, or "".
func readHandmade(t testing.TB, path string) (object []byte, why string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := handmadeComment.FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s does not say what is expected of it", path)
	}
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	var stderr bytes.Buffer
	clang := exec.Command("clang-19", "-target", "bpf", "-mcpu=v3", "-g", "-O2", "-Wall", "-Werror", "-Wno-unused",
		"-I../sdk", "-I../bpf", "-idirafter", "/usr/include/"+triplet, "-c", path, "-o", "-")
	clang.Stderr = &stderr
	object, err = clang.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	return object, string(m[1])
}

// Object files of another compiler are refused for what they do, or harm nobody else. Their answers go to whoever asked.
func TestHandmadeObjects(t *testing.T) {
	files, err := filepath.Glob(handmadeDir + "/*.c")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d objects, %v", len(files), err)
	}
	h := openNeighbourhood(t)
	manifest := buildVictim(t).Manifest
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".c"), func(t *testing.T) {
			object, why := readHandmade(t, file)
			err := h.put(t, &compiler.Artifact{Manifest: manifest, BPF: object}, hostileID)
			switch {
			case err != nil && (why == "" || !strings.Contains(err.Error(), why)):
				t.Errorf("refused, not for %q: %v", why, err)
			case err != nil:
				t.Log(err)
			case why != "":
				t.Error("accepted")
				fallthrough
			default:
				for range 3 {
					h.checkAnswer(t)
					h.checkNeighbour(t)
				}
				if err := h.Remove(t.Context(), hostileID); err != nil {
					t.Error(err)
				}
			}
			h.checkNeighbour(t)
		})
	}
}

// checkAnswer asks the hostile lambda. Its packets must be dropped, or go back to the sender of the request as a reply to it.
func (h *neighbourhood) checkAnswer(t *testing.T) {
	t.Helper()
	h.requests++
	f := packets.Frame{RPC: packets.RPC{Workload: "hostile", Request: h.requests, Payload: "attack", Room: 1000}}
	frame, err := f.Build(hostileWorkloads)
	if err != nil {
		t.Fatal(err)
	}
	opts := ebpf.RunOptions{Data: frame, DataOut: make([]byte, 1<<13)}
	switch verdict, err := h.Root().Run(&opts); {
	case err != nil:
		t.Fatal(err)
	case verdict == xdpTX:
		if _, _, err := packets.Answer(frame, opts.DataOut); err != nil {
			t.Errorf("answers what is no reply: %v", err)
		}
	case verdict != xdpDrop:
		t.Errorf("ends with the verdict %d", verdict)
	}
}

const xdpDrop = 1

package gateway

import (
	"bufio"
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/internal/gateway/codec"
)

const memoryServer = "LAMBDANIC_TEST_MEMORY_SERVER"

// serveForMemory runs in the child, till its input ends.
func serveForMemory(t *testing.T) {
	LimitMemory()
	g := newGateway(t)
	server := serve(t, g)
	fmt.Println("SERVER " + server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// peak is what a process had in memory at most, in bytes.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// Whatever strangers send at once, the gateway keeps within its memory, and refuses the rest with a reason.
func TestMemoryOfStrangers(t *testing.T) {
	if os.Getenv(memoryServer) != "" {
		serveForMemory(t)
		return
	}
	// As many pixels as fit, at 16 bits a colour: a small file.
	var bomb bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&bomb, image.NewNRGBA64(image.Rect(0, 0, 4096, 4096))); err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(t.TempDir(), "server")                                                              // without the race detector, whose own memory is a multiple of the program's
	compile := exec.CommandContext(t.Context(), "go", "test", "-trimpath", "-vet=off", "-c", "-o", server, ".") // as tools/gotest compiles others
	compile.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	text := make([]byte, readAhead)
	for name, kind := range map[string]struct {
		path, contentType string
		body              []byte
		chunked           bool
		count             int
	}{
		"announced": {"/function/large?method=9999", "text/plain", text, false, 200},
		"chunked":   {"/function/large?method=9999", "text/plain", text, true, 200},
		"images":    {"/function/images?method=9999", codec.TypePNG, bomb.Bytes(), false, 8},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), server, "-test.run=^TestMemoryOfStrangers$")
			cmd.Env = append(os.Environ(), memoryServer+"=1")
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close(); _, _ = io.Copy(io.Discard, out); _ = cmd.Wait() }()
			url, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			url = strings.TrimSpace(strings.TrimPrefix(url, "SERVER "))
			var all sync.WaitGroup
			for range kind.count {
				all.Go(func() {
					var body io.Reader = bytes.NewReader(kind.body)
					if kind.chunked {
						body = io.MultiReader(body)
					}
					r, err := http.Post(url+kind.path, kind.contentType, body)
					if err != nil {
						return // refused before it had sent all
					}
					defer func() { _ = r.Body.Close() }()
					said, _ := io.ReadAll(r.Body)
					if r.StatusCode != http.StatusGatewayTimeout && (r.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(said), "busy")) {
						t.Errorf("%d %s", r.StatusCode, said)
					}
				})
			}
			all.Wait()
			most := peak(t, cmd.Process.Pid)
			t.Logf("%d MiB", most>>20)
			if most > 512<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
		})
	}
}

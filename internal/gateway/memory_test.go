package gateway

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
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

// refusal sends a body until it is told that the gateway is busy. Any other answer is an error.
func refusal(ctx context.Context, url, contentType string, body []byte, chunked bool) error {
	for {
		var from io.Reader = bytes.NewReader(body)
		if chunked {
			from = io.MultiReader(from)
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, from)
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", contentType)
		r.Header.Set(api.HeaderTimeout, maxTimeout.String())
		answer, err := http.DefaultClient.Do(r)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
			continue // refused before it had sent all, and did not receive the reason
		} else if err != nil {
			return err
		}
		said, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(said), errMemory.Error()) {
			return fmt.Errorf("answered with %s: %s", answer.Status, said)
		}
		return nil
	}
}

// Whatever clients send at once, the gateway keeps within its memory, and refuses the rest with a reason.
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
		count, fit        int // fit: how many the gateway has memory for at once
	}{
		"announced": {"/function/large?method=9999", "text/plain", text, false, 200, memory / readAhead},
		"chunked":   {"/function/large?method=9999", "text/plain", text, true, 200, memory / readAhead},
		"images":    {"/function/images?method=9999", codec.TypePNG, bomb.Bytes(), false, 8, memory / int(converting)},
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
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			ended := make(chan error, kind.count)
			for range kind.count {
				go func() { ended <- refusal(ctx, url+kind.path, kind.contentType, kind.body, kind.chunked) }()
			}
			for range kind.count - kind.fit { // the lambda is silent, so that the gateway keeps holding what it holds
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}
			hangUp()
			for range kind.fit {
				<-ended
			}
			most := peak(t, cmd.Process.Pid)
			t.Logf("%d MiB", most>>20)
			if most > 512<<20 {
				t.Errorf("it took %d MiB", most>>20)
			}
		})
	}
}

package lambdanic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// Workloads of the test server. Methods say how long the reply is, unless the lambda decides that itself.
const (
	echoPacket   = 1 // the request, or text of the method's length
	echoAssemble = 2
	echoStream   = 3
	greyStream   = 4 // every fourth byte
	keepStream   = 5 // kept packet by packet, answered as a whole
	echoWhole    = 6 // assemble, with responses marked as whole
)

var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 64<<20+4096)
	_, _ = rand.NewChaCha8([32]byte{'n'}).Read(b) // never fails, as documented
	return b
})

// text is n bytes, different for every n. Nobody may write into it.
func text(n int) []byte { return noise()[n%4096:][:n:n] }

func every4th(p []byte) []byte {
	out := make([]byte, 0, len(p)/4)
	for i := 0; i+3 < len(p); i += 4 {
		out = append(out, p[i])
	}
	return out
}

func workloads(revision uint32) map[uint32]rpcserver.Workload {
	echo := func(method uint32, request []byte) ([]byte, api.Status) {
		if method > 4<<20 {
			return nil, api.StatusBadRequest
		}
		if method > 0 {
			return text(int(method)), api.StatusOK
		}
		return bytes.Clone(request), api.StatusOK
	}
	return map[uint32]rpcserver.Workload{
		echoPacket:   {Mode: api.ModePacket, Revision: revision, Handle: echo},
		echoAssemble: {Mode: api.ModeAssemble, Revision: revision, Handle: echo},
		echoWhole:    {Mode: api.ModeAssemble, Revision: revision, Handle: echo, Whole: true},
		echoStream: {Mode: api.ModeStream, Revision: revision, Part: func(_ uint32, size, _ int, p []byte) ([]byte, int, bool) {
			return bytes.Clone(p), size, true
		}},
		greyStream: {Mode: api.ModeStream, Revision: revision, Part: func(_ uint32, size, _ int, p []byte) ([]byte, int, bool) {
			return every4th(p), size / 4, true
		}},
		keepStream: {
			Mode: api.ModeStream, Revision: revision, Handle: echo,
			Part: func(uint32, int, int, []byte) ([]byte, int, bool) { return nil, 0, false },
		},
	}
}

// want is what a workload answers.
func want(workload, method uint32, body []byte) []byte {
	switch {
	case workload == greyStream:
		return every4th(body)
	case method > 0 && workload != echoStream:
		return text(int(method))
	}
	return body
}

func serve(t testing.TB, address string, faults rpcserver.Faults) *rpcserver.Server {
	t.Helper()
	s, err := rpcserver.Start(address, workloads(7), faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A caller is a way to call: a Client, its streams, or a Conn.
type caller struct {
	name string
	call func(context.Context, lambdanic.Request) (lambdanic.Response, error)
}

func callers(t testing.TB, addr string, opts ...lambdanic.Option) []caller {
	t.Helper()
	opts = append([]lambdanic.Option{lambdanic.WithTimeout(patience)}, opts...)
	client, err := lambdanic.Dial(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	conn, err := lambdanic.DialConn(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	spin, err := lambdanic.DialConn(addr, append(opts, lambdanic.WithSpin())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spin.Close() })
	return []caller{{"client", client.Call}, {"stream", streamCall(client)}, {"conn", conn.Call}, {"spinning", spin.Call}}
}

func streamCall(c *lambdanic.Client) func(context.Context, lambdanic.Request) (lambdanic.Response, error) {
	return func(ctx context.Context, req lambdanic.Request) (lambdanic.Response, error) {
		var reply bytes.Buffer
		body := req.Body
		req.Body = nil
		r, err := c.CallStream(ctx, req, bytes.NewReader(body), len(body), &reply)
		r.Body = reply.Bytes()
		return r, err
	}
}

func check(t *testing.T, c caller, req lambdanic.Request) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := c.call(ctx, req)
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	reply := want(req.Workload, req.Method, req.Body)
	if !bytes.Equal(r.Body, reply) {
		t.Fatalf("%s: %d bytes differ from the %d expected", c.name, len(r.Body), len(reply))
	}
	if r.Revision != 7 || r.Status != api.StatusOK || r.Length != len(reply) {
		t.Fatalf("%s: %d bytes, revision %d, status %d", c.name, r.Length, r.Revision, r.Status)
	}
}

var loopbacks = []string{"127.0.0.1:0", "[::1]:0"}

func TestSizes(t *testing.T) {
	const room, frag, single = 512, api.RPCFragment, api.RPCMaxPayload
	sizes := []int{0, 1, 4, room - 1, room, room + 1, frag - 1, frag, frag + 1, single - 20, single - 19, single, single + 1, 2 * frag, 3*frag + 8, 64 * frag, 65*frag + 1, 1 << 20}
	for _, address := range loopbacks {
		s := serve(t, address, rpcserver.Faults{})
		for _, c := range callers(t, s.Addr().String()) {
			for _, w := range []uint32{echoPacket, echoAssemble, echoStream, greyStream, keepStream, echoWhole} {
				t.Run(fmt.Sprintf("%s/%s/%d", strings.TrimSuffix(address, ":0"), c.name, w), func(t *testing.T) {
					for _, n := range sizes {
						switch {
						case w == echoPacket && n > single-20:
							continue
						case w == greyStream && n < 4:
							continue
						case w == greyStream:
							n &^= 3
						}
						check(t, c, lambdanic.Request{Workload: w, Body: text(n)})
					}
				})
			}
		}
		if !rpcserver.Every(time.Millisecond, patience, func() bool { return s.Records() <= 16*8*4 }) {
			t.Errorf("%d messages were not released", s.Records())
		}
	}
}

func TestReplies(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	for _, c := range callers(t, s.Addr().String()) {
		for _, w := range []uint32{echoPacket, echoAssemble, keepStream} {
			for _, request := range []int{0, 100, 5000} {
				if w == echoPacket && request > api.RPCMaxPayload {
					continue
				}
				for _, reply := range []uint32{1, 511, 512, 513, 1407, 1408, 1409, 2817, 100_000, 1 << 20} {
					check(t, c, lambdanic.Request{Workload: w, Method: reply, Body: text(request)})
				}
			}
		}
	}
}

func TestImpaired(t *testing.T) {
	for seed := range uint64(2) {
		s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: seed, Drop: 0.1, Reorder: 0.1, Duplicate: 0.05})
		for _, c := range callers(t, s.Addr().String()) {
			t.Run(fmt.Sprintf("seed %d/%s", seed, c.name), func(t *testing.T) {
				t.Parallel()
				for range 20 {
					check(t, c, lambdanic.Request{Workload: echoPacket, Body: text(100)})
				}
				check(t, c, lambdanic.Request{Workload: echoPacket, Method: 50_000, Body: text(100)})
				for _, w := range []uint32{echoAssemble, echoStream, greyStream, keepStream, echoWhole} {
					for _, n := range []int{1376, 2000, 4128, 100_000, 1 << 20} {
						check(t, c, lambdanic.Request{Workload: w, Body: text(n)})
					}
				}
			})
		}
	}
}

func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("64 MiB take seconds: run without -short")
	}
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	for i, c := range callers(t, s.Addr().String()) {
		t.Run(c.name, func(t *testing.T) {
			longest := 64 << 20
			if i > 1 { // a Conn numbers packets as a Client does, by the same code
				longest = 8 << 20
			}
			check(t, c, lambdanic.Request{Workload: echoAssemble, Body: text(8 << 20)})
			check(t, c, lambdanic.Request{Workload: greyStream, Body: text(longest)})
		})
	}
}

func TestLargeImpaired(t *testing.T) {
	if testing.Short() {
		t.Skip("16 MiB with losses take seconds: run without -short")
	}
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 9, Drop: 0.1, Reorder: 0.1, Duplicate: 0.05})
	for _, c := range callers(t, s.Addr().String())[1:3] {
		for _, w := range []uint32{echoAssemble, greyStream} {
			check(t, c, lambdanic.Request{Workload: w, Body: text(16 << 20)})
		}
	}
}

func TestCorrupted(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{Seed: 4, Corrupt: 0.2})
	for _, c := range callers(t, s.Addr().String()) {
		for range 50 { // a flipped bit may change the answer, but there must be one
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := c.call(ctx, lambdanic.Request{Workload: echoAssemble, Body: text(20_000)})
			cancel()
			var e *lambdanic.RPCError
			if err != nil && !errors.As(err, &e) && !errors.Is(err, lambdanic.ErrDeadlineExceeded) && !errors.Is(err, lambdanic.ErrReplyTooLarge) {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
	}
}

func TestStreamReader(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	c, err := lambdanic.Dial(s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	req := lambdanic.Request{Workload: echoStream}
	if _, err := c.CallStream(t.Context(), req, strings.NewReader("short"), 10_000, io.Discard); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("short body: %v", err)
	}
	broken, w := io.Pipe()
	w.CloseWithError(io.ErrClosedPipe)
	if _, err := c.CallStream(t.Context(), req, broken, 10_000, io.Discard); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("broken reader: %v", err)
	}
	pr, pw := io.Pipe()
	pr.CloseWithError(io.ErrNoProgress)
	if _, err := c.CallStream(t.Context(), req, bytes.NewReader(text(10_000)), 10_000, pw); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("broken writer: %v", err)
	}
}

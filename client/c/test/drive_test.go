package test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

type request struct {
	workload, method, room uint32
	deadline               time.Duration
	body                   []byte
}

// A reply is a reply as ../driver/drive.c prints it.
type reply struct {
	result, osError  int
	need             uint32
	status           int
	revision, resent uint32
	body             []byte
}

type stats struct {
	calls, restarts, sent, resent, received, duplicates, stray, malformed uint64
}

// Results of calls (../lambdanic.h).
const (
	deadline        = -1
	requestTooLarge = -2
	replyTooLarge   = -3
)

// drive makes the calls in a way: one after the other, all at once, or submitted.
func drive(t *testing.T, address, way string, requests []request, options ...string) ([]reply, stats) {
	t.Helper()
	var in strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&in, "%d %d %d %d .%x\n", r.workload, r.method, r.room, r.deadline.Microseconds(), r.body)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, driver(t, "drive"), append([]string{address, way}, options...)...)
	cmd.Stdin = strings.NewReader(in.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("drive %s %s: %v\n%s", address, way, err, &stderr)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(requests)+1 {
		t.Fatalf("%d lines for %d requests", len(lines), len(requests))
	}
	replies := make([]reply, len(requests))
	for i := range replies {
		head, body, _ := strings.Cut(lines[i], ".")
		r := &replies[i]
		if _, err := fmt.Sscan(head, &r.result, &r.osError, &r.need, &r.status, &r.revision, &r.resent); err != nil {
			t.Fatalf("%q: %v", head, err)
		}
		if r.body, err = hex.DecodeString(body); err != nil {
			t.Fatal(err)
		}
	}
	var s stats
	_, err = fmt.Sscan(lines[len(requests)], &s.calls, &s.restarts, &s.sent, &s.resent, &s.received, &s.duplicates, &s.stray, &s.malformed)
	if err != nil {
		t.Fatal(err)
	}
	return replies, s
}

var ways = []string{"call", "many", "submit"}

// Workloads of the test server. Methods say how long the reply is, unless the lambda decides that itself.
const (
	echoPacket   = 1 // the request, or text of the method's length
	echoAssemble = 2
	echoStream   = 3
	greyStream   = 4 // every fourth byte
	keepStream   = 5 // kept packet by packet, answered as a whole
	echoWhole    = 6 // assemble, with responses marked as whole
)

const revision = 7

var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{'c'}).Read(b) // never fails, as documented
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

func workloads() map[uint32]rpcserver.Workload {
	echo := func(method uint32, request []byte) ([]byte, api.Status) {
		if method > 4<<20 { // it was corrupted
			return nil, api.StatusBadRequest
		}
		if method > 0 {
			return text(int(method)), api.StatusOK
		}
		return bytes.Clone(request), api.StatusOK
	}
	stream := func(part rpcserver.Part) rpcserver.Workload {
		return rpcserver.Workload{Mode: api.ModeStream, Revision: revision, Part: part, Handle: echo}
	}
	return map[uint32]rpcserver.Workload{
		echoPacket:   {Mode: api.ModePacket, Revision: revision, Handle: echo},
		echoAssemble: {Mode: api.ModeAssemble, Revision: revision, Handle: echo},
		echoWhole:    {Mode: api.ModeAssemble, Revision: revision, Handle: echo, Whole: true},
		echoStream:   stream(func(_ uint32, size, _ int, p []byte) ([]byte, int, bool) { return bytes.Clone(p), size, true }),
		greyStream:   stream(func(_ uint32, size, _ int, p []byte) ([]byte, int, bool) { return every4th(p), size / 4, true }),
		keepStream:   stream(func(uint32, int, int, []byte) ([]byte, int, bool) { return nil, 0, false }),
	}
}

// want is what a workload answers.
func want(r request) []byte {
	switch {
	case r.workload == greyStream:
		return every4th(r.body)
	case r.method > 0 && r.workload != echoStream:
		return text(int(r.method))
	}
	return r.body
}

func serve(t *testing.T, address string, faults rpcserver.Faults) *rpcserver.Server {
	t.Helper()
	s, err := rpcserver.Start(address, workloads(), faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// check makes the calls in every way and compares every answer.
func check(t *testing.T, address string, requests []request, options ...string) (sum stats) {
	t.Helper()
	for _, way := range ways {
		replies, s := drive(t, address, way, requests, options...)
		for i, r := range replies {
			q := requests[i]
			if r.result != 0 || r.status != 0 || r.revision != revision || !bytes.Equal(r.body, want(q)) {
				t.Errorf("%s: %d bytes to workload %d, method %d: %d bytes, want %d: %+v", way, len(q.body), q.workload, q.method,
					len(r.body), len(want(q)), reply{r.result, r.osError, r.need, r.status, r.revision, r.resent, nil})
			}
		}
		if s.stray > s.received || s.received > 0 && s.calls < uint64(len(requests)) {
			t.Errorf("%s: %+v", way, s)
		}
		sum.sent += s.sent
		sum.resent += s.resent
		sum.restarts += s.restarts
		sum.malformed += s.malformed
	}
	return sum
}

package conformance

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/impair"
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
	lastWorkload = echoWhole
)

const revision = 7

var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 8<<20)
	_, _ = rand.NewChaCha8([32]byte{'f'}).Read(b) // never fails, as documented
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
func want(c call) []byte {
	switch {
	case c.Workload == greyStream:
		return every4th(c.Body)
	case c.Method > 0 && c.Workload != echoStream:
		return text(int(c.Method))
	}
	return c.Body
}

// loopback is where servers listen, and how many bytes one packet holds there.
var loopback = map[string]int{"127.0.0.1:0": api.RPCMaxPayload, "[::1]:0": api.RPCMaxPayload - 20}

func serve(t *testing.T, address string, faults rpcserver.Faults) *rpcserver.Server {
	t.Helper()
	s, err := rpcserver.Start(address, workloads(), faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// behind puts a network with faults before a server.
func behind(t *testing.T, server netip.AddrPort, faults impair.Faults) *impair.Relay {
	t.Helper()
	listen := "127.0.0.1:0"
	if server.Addr().Is6() {
		listen = "[::1]:0"
	}
	down := faults
	down.Seed += 100
	r, err := impair.Start(impair.Config{Listen: listen, Server: server, Up: faults, Down: down})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// answered makes calls and compares every answer.
func (d *driver) answered(t *testing.T, atOnce bool, calls ...call) {
	t.Helper()
	for i, o := range d.call(atOnce, calls...) {
		c := calls[i]
		if o.Error != "" || o.Status != api.StatusOK || o.Revision != revision || !bytes.Equal(o.Body, want(c)) {
			t.Errorf("%d bytes to workload %d, method %d, at once %t: error %q, status %d, revision %d, %d bytes, want %d", len(c.Body),
				c.Workload, c.Method, atOnce, o.Error, o.Status, o.Revision, len(o.Body), len(want(c)))
		}
	}
}

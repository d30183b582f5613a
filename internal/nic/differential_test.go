package nic

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/test/freeport"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// A pair is one lambda in two places, which must answer alike.
type pair struct {
	t            *testing.T
	nic, process *net.UDPConn
	status       [2]func(context.Context) ([]backend.Status, error) // of both places
	sentinel     packets.RPC                                        // a request that both answer
	numbers      map[string]uint32
}

func newPair(t *testing.T, n *NIC, d backend.Deployment, sentinel packets.RPC) *pair {
	t.Helper()
	d.NamespaceID = tenant
	keyed(t, n, false, 1)
	deploy(t, n, d)
	b := startProcess(t, d)
	endpoint, _ := b.Endpoint(d.Workload)
	return &pair{
		t: t, nic: dial(t, n.Addr()), process: dial(t, endpoint), sentinel: sentinel, numbers: workloads,
		status: [2]func(context.Context) ([]backend.Status, error){n.Status, b.Status},
	}
}

// startProcess runs the lambda natively, where lambda-host's sanitizers watch it.
func startProcess(t *testing.T, d backend.Deployment) *process.Backend {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", filepath.Join(root, "host"), "asan").CombinedOutput(); err != nil {
		t.Fatalf("build lambda-host: %v\n%s", err, out)
	}
	b, err := process.New(process.Config{
		HostBinary: filepath.Join(root, "build", "lambda-host-asan"), RunDir: shortdir.New(t), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Listen: freeport.UDP,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	keyed(t, b, false, 1)
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return b
}

func dial(t testing.TB, to netip.AddrPort) *net.UDPConn {
	t.Helper()
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask sends a datagram, and then a request that is answered: an answer that has not come by then will hardly come.
func (p *pair) ask(conn *net.UDPConn, b []byte) []byte {
	p.t.Helper()
	last := p.sentinel
	last.Request = requests.Add(1) | 1<<63
	for _, d := range [][]byte{b, last.Build(p.numbers)} {
		_, err := conn.Write(d)
		if errors.Is(err, syscall.ECONNREFUSED) { // the error of the datagram before; this one was not sent
			_, err = conn.Write(d)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	var reply []byte
	for {
		got := p.receive(conn, patience)
		switch {
		case got == nil:
			p.t.Fatalf("%v says nothing more, after %x", conn.RemoteAddr(), b)
		case binary.BigEndian.Uint64(got[16:]) == last.Request:
			return reply
		case answers(got, b):
			reply = got
		}
	}
}

// answers says whether a reply is to this request.
func answers(reply, b []byte) bool { return len(b) >= 24 && bytes.Equal(reply[16:24], b[16:24]) }

// receive gives the next datagram, or nil when there is none for so long.
func (p *pair) receive(conn *net.UDPConn, wait time.Duration) []byte {
	p.t.Helper()
	buf := make([]byte, 1<<16)
	conn.SetReadDeadline(time.Now().Add(wait))
	for {
		size, err := conn.Read(buf)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // the host's stack, which has no socket for other datagrams than λ-RPC
		}
		if err != nil {
			return nil
		}
		if size >= api.RPCHeaderLen {
			return buf[:size]
		}
	}
}

// late returns a reply that was overtaken: calls go through memcached, which may be asked on two CPUs.
func (p *pair) late(conn *net.UDPConn, b []byte) []byte {
	for got := p.receive(conn, patience); got != nil; got = p.receive(conn, patience) {
		if answers(got, b) {
			return got
		}
	}
	return nil
}

// compare asks both and fails unless their answers are the same, byte for byte. It returns whether there was an answer.
func (p *pair) compare(b []byte) bool {
	p.t.Helper()
	n, h := p.ask(p.nic, b), p.ask(p.process, b)
	if n == nil && h != nil {
		n = p.late(p.nic, b)
	} else if h == nil && n != nil {
		h = p.late(p.process, b)
	}
	p.same(b, n, h)
	return n != nil
}

func (p *pair) same(b, n, h []byte) {
	p.t.Helper()
	if !bytes.Equal(ungranted(n), ungranted(h)) && !busy(n) && !busy(h) { // each keeps its records in its own way
		p.t.Fatalf("request %s\nNIC     %s\nprocess %s", show(b), show(n), show(h))
	}
}

// answered are requests to each lambda that are always answered, whatever was asked before.
var answered = map[string][]packets.RPC{
	"web_server":        {{Payload: "/", Room: 64}, {Payload: "/long", Room: api.RPCMaxPayload}, {Payload: "/none"}},
	"kv_client":         {{Method: 1, Payload: "\x03keyvalue", Room: 64}, {Payload: "key", Room: 64}, {Method: 2, Payload: "key"}},
	"image_transformer": {{Payload: "rgba"}, {Method: 1, Payload: "rgbargba"}, {Method: 2, Payload: "8 bytes."}, {Method: 3, Payload: "rgba"}},
}

// compareRound compares the answers to a random request, mutilated or not, and to one that must be answered.
func (p *pair) compareRound(name string, round int, q packets.RPC, mutilate bool, r *rand.Rand) {
	p.t.Helper()
	if r.IntN(2) == 0 {
		key, sequence := packets.KeyOf(1), sequences.Add(1)
		q.Key, q.Sequence = &key, &sequence
	}
	b := q.Build(p.numbers)
	if mutilate {
		b = packets.Mutate(r, b)
	}
	p.compare(b[:min(len(b), api.RPCHeaderLen+api.RPCMaxPayload)])
	sure := answered[name][round%len(answered[name])]
	sure.Workload, sure.Request = q.Workload, requests.Add(1)
	b = sure.Build(p.numbers)
	var replies [2][]byte
	for i, conn := range []*net.UDPConn{p.nic, p.process} {
		reply := p.ask(conn, b)
		if reply == nil {
			reply = p.late(conn, b)
		}
		if reply == nil || busy(reply) {
			p.t.Fatalf("round %d: no answer of %v to %s", round, conn.RemoteAddr(), show(b))
		}
		replies[i] = reply
	}
	p.same(b, replies[0], replies[1])
}

// ungranted is an answer without its grant, which depends on the messages that were heard of in the last 20 ms.
func ungranted(b []byte) []byte {
	const grant = 52
	if b == nil || api.Type(b[3]) != api.TypeAck {
		return b
	}
	b = bytes.Clone(b)
	clear(b[grant : grant+4])
	return b
}

func busy(b []byte) bool {
	return b != nil && api.Type(b[3]) == api.TypeError && api.Code(b[5]) == api.CodeBusy
}

func show(b []byte) string {
	h, p, err := api.ParsePacket(b)
	return fmt.Sprintf("%+v %.80q %v", h, p, err)
}

// Every bundled lambda gives the same bytes on the NIC and as a process, for requests of all kinds and for mutilated ones.
func TestSameAnswers(t *testing.T) {
	rounds := 1500
	if testing.Short() {
		rounds = 200
	}
	for name, lambda := range map[string]struct {
		sentinel packets.RPC
		request  func(r *rand.Rand) packets.RPC
	}{
		"web_server": {packets.RPC{}, webRequest}, "kv_client": {packets.RPC{Payload: "k", Room: 64}, kvRequest},
		"image_transformer": {packets.RPC{Payload: "rgba"}, imageRequest},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNIC(t)
			d := bundled(t, name, workloads["web"], 1)
			if len(d.Spec.Services) > 0 {
				addr, _ := startMemcached(t, n)
				d = withService(d, addr)
			}
			lambda.sentinel.Workload = "web"
			p := newPair(t, n, d, lambda.sentinel)
			r := seed.Rand(t)
			for i := range rounds {
				q := lambda.request(r)
				q.Workload, q.Request = "web", requests.Add(1)
				p.compareRound(name, i, q, i%4 == 3, r)
			}
		})
	}
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func random(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

func webRequest(r *rand.Rand) packets.RPC {
	q := packets.RPC{Payload: pick(r, "", "/", "/hello", "/about", "/long", "/none", "/hello/", random(r, r.IntN(12))), Room: r.IntN(api.RPCMaxPayload + 1)}
	if r.IntN(3) == 0 {
		typ, size, count := api.TypePull, uint32(1+r.IntN(q.Room+1)), uint32(1+r.IntN(20))
		q.Type, q.MessageLen, q.Count, q.Index, q.Revision = &typ, &size, &count, r.Uint32N(count+1), uint32(pick(r, 1, 1, 1, 2))
	}
	return q
}

func kvRequest(r *rand.Rand) packets.RPC {
	key := pick(r, "k", "key", "a-longer-key", random(r, r.IntN(10)), random(r, r.IntN(300)))
	q := packets.RPC{Method: uint32(pick(r, 0, 0, 1, 1, 2)), Payload: key, Room: pick(r, 64, 400, api.RPCMaxPayload)}
	if q.Method == 1 {
		q.Payload = string([]byte{byte(pick(r, len(key), len(key), r.IntN(256)))}) + key + random(r, pick(r, 0, 1, 9, 10, 99, 100, 999, 1000, 1024, 1025)/pick(r, 1, 10))
	}
	return q
}

func imageRequest(r *rand.Rand) packets.RPC {
	pixels := r.IntN(api.RPCMaxPayload/4 + 1)
	q := packets.RPC{Method: uint32(pick(r, 0, 0, 0, 1, 2, 3)), Payload: random(r, pick(r, 4*pixels, 4*pixels, 8, pixels))}
	if r.IntN(20) == 0 { // one packet of several
		// If it is kept, and only one side refuses it as busy, later answers would differ.
		count, length := uint32(3), uint32(2*1376+4)
		q.Method = 0
		q.Count, q.MessageLen, q.Index, q.Payload, q.Flags = &count, &length, r.Uint32N(2), random(r, 1376), api.FlagAckWanted
	}
	return q
}

// Whole images in packets in any order, some of them twice: each packet of the grey image is the same.
func TestSameImages(t *testing.T) {
	n := newTestNIC(t)
	p := newPair(t, n, bundled(t, "image_transformer", workloads["web"], 1), packets.RPC{Workload: "web", Payload: "rgba"})
	r := seed.Rand(t)
	for range 12 {
		for _, method := range []uint32{0, 1} {
			list := fragments("web", method, randomBytes(4*(1+r.IntN(8000))), 16*(1+r.IntN(api.RPCFragment/16)))
			for _, i := range append(r.Perm(len(list)), 0) {
				p.compare(list[i].RPC.Build(workloads))
			}
			handle := packets.RPC{Workload: "web", Request: requests.Add(1), Method: 2, Room: api.RPCMaxPayload,
				Payload: string(binary.BigEndian.AppendUint64(nil, list[0].RPC.Request))}
			if method == 1 {
				p.compare(handle.Build(workloads))
			}
			finish := done(list[0])
			p.compare(finish.RPC.Build(workloads))
		}
	}
}

// Both count alike, and each request once: further packets, repeated packets, pulls and acknowledgements are not requests, and a refused
// packet counts only as an error.
func TestSameCounts(t *testing.T) {
	first := api.Header{Revision: 1, Length: 100, Count: 5}
	web := packets.Frame{RPC: packets.RPC{Workload: "web", Payload: "/long", Room: 100, Request: requests.Add(1)}}
	malformed := web
	malformed.RPC.Index = 1
	message := func(mode string, method uint32) []packets.Frame {
		list := fragments(mode, method, randomBytes(500), 100)
		return append(list, list[4], list[2])
	}
	assembled := message("assemble", methodEcho)
	for name, c := range map[string]struct {
		d      backend.Deployment
		send   []packets.Frame
		errors uint64
	}{
		"a long page": {bundled(t, "web_server", workloads["web"], 1), []packets.Frame{web, pull(web, first, 1), pull(web, first, 2), malformed, done(web)}, 1},
		"stream":      {probe(t, workloads["stream"], 1, streamSpec), message("stream", methodEcho), 0},
		"kept stream": {probe(t, workloads["stream"], 1, streamSpec), message("stream", methodTake), 0},
		"assembled": {probe(t, workloads["assemble"], 1, assembleSpec),
			append(assembled, pull(assembled[0], first, 1), pull(assembled[0], first, 0), done(assembled[0])), 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, newTestNIC(t), c.d, packets.RPC{Workload: c.send[0].RPC.Workload, Index: 1}) // malformed
			for _, f := range c.send {
				p.compare(f.RPC.Build(workloads))
			}
			errors := uint64(len(c.send)) + c.errors // a sentinel follows each
			for i, status := range p.status {
				list, err := status(t.Context())
				if err != nil || len(list) != 1 {
					t.Fatalf("status %v, %v", list, err)
				}
				if s := list[0].Stats; s.Requests != 1 || s.Replies != 1 || s.Errors != errors {
					t.Errorf("%s: got %+v, want a request, a reply, and %d errors", []string{"NIC", "process"}[i], s, errors)
				}
			}
		})
	}
}

package conformance

import (
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/stand"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

// tagFlags are what the flags of a packet say of its tag.
const tagFlags = api.FlagTag | api.FlagTagPayload | api.FlagOddKey

func keyOf(number uint32) api.Key {
	return api.Key{Namespace: "tenant", Number: number, Secret: [api.SecretLen]byte([]byte("\x00 secret\xff really"))}
}

func textOf(t *testing.T, k api.Key) string {
	t.Helper()
	text, err := k.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n" // as in its file
}

// A tagger stands between clients with a key and a server that looks at no tags. It checks and removes those of requests, and tags answers. Before some
// of them, it sends others, which nobody may take.
type tagger struct {
	t       *testing.T
	key     api.Key
	flags   api.Flag
	conn    *net.UDPConn
	server  netip.AddrPort
	running sync.WaitGroup

	mu      sync.Mutex
	clients map[netip.AddrPort]*net.UDPConn // connections to the server
	seen    map[[2]uint32]bool              // identities and sequence numbers
	calls   map[uint64]bool                 // request IDs
	types   map[api.Type]int                // of requests
	resends int
}

// tagging puts a tagger before a server. Without one, it refuses what comes, by the code that the method says.
func tagging(t *testing.T, server netip.AddrPort, key api.Key, payload bool) *tagger {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	g := &tagger{
		t: t, key: key, flags: key.TagFlags(payload), conn: conn, server: server,
		clients: map[netip.AddrPort]*net.UDPConn{}, seen: map[[2]uint32]bool{}, calls: map[uint64]bool{}, types: map[api.Type]int{},
	}
	g.running.Go(g.requests)
	t.Cleanup(g.close)
	return g
}

// attempts is how many calls there were since it was last asked.
func (g *tagger) attempts() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.calls)
	clear(g.calls)
	return n
}

func (g *tagger) close() {
	g.conn.Close()
	g.mu.Lock()
	for _, up := range g.clients {
		up.Close()
	}
	g.mu.Unlock()
	g.running.Wait()
}

func (g *tagger) requests() {
	buf := make([]byte, 2048)
	for {
		n, from, err := g.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		h, payload, err := api.ParsePacket(buf[:n])
		if err != nil {
			g.t.Errorf("a client sent %x: %v", buf[:n], err)
			continue
		}
		g.check(h, payload)
		if !g.server.IsValid() {
			refusal := api.Header{Type: api.TypeError, Code: uint8(h.Method), Workload: h.Workload, Request: h.Request, Count: 1}
			_, _ = g.conn.WriteToUDPAddrPort(refusal.Append(nil), from)
			continue
		}
		h.Flags, h.Tag = h.Flags&^tagFlags, 0
		_, _ = g.to(from).Write(append(h.Append(nil), buf[api.RPCHeaderLen:n]...)) // with its padding, which is the answer's room
	}
}

// check checks that a packet has the right tag, and a number that no other has.
func (g *tagger) check(h api.Header, payload []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := [2]uint32{h.Client, h.Sequence}
	if h.Tag != packets.Tag(&g.key, h.Flags, h.Append(nil), payload) || h.Flags&tagFlags != g.flags || g.seen[id] || h.Client == 0 {
		g.t.Errorf("a client sent %+v with %d bytes", h, len(payload))
	}
	g.seen[id], g.calls[h.Request] = true, true
	g.types[h.Type]++
	if h.Flags&api.FlagResend != 0 {
		g.resends++
	}
}

// to is a client's connection to the server, whose answers go back.
func (g *tagger) to(client netip.AddrPort) *net.UDPConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	up := g.clients[client]
	if up == nil {
		var err error
		if up, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(g.server)); err != nil {
			panic(err)
		}
		g.clients[client] = up
		g.running.Go(func() { g.answers(up, client) })
	}
	return up
}

func (g *tagger) answers(up *net.UDPConn, client netip.AddrPort) {
	buf := make([]byte, 2048)
	for {
		n, err := up.Read(buf)
		if err != nil {
			return
		}
		h, payload, err := api.ParsePacket(buf[:n])
		if err != nil {
			continue
		}
		if h.Index%8 == 0 {
			for _, p := range g.forgeries(h, payload) {
				_, _ = g.conn.WriteToUDPAddrPort(p, client)
			}
		}
		_, _ = g.conn.WriteToUDPAddrPort(tagged(h, payload, g.key, g.flags), client)
	}
}

// tagged is a packet with a tag.
func tagged(h api.Header, payload []byte, key api.Key, flags api.Flag) []byte {
	h.Flags |= flags
	h.Tag = packets.Tag(&key, h.Flags, h.Append(nil), payload)
	return append(h.Append(nil), payload...)
}

// forgeries are answers that say something else, and errors, none with the right tag.
func (g *tagger) forgeries(h api.Header, payload []byte) [][]byte {
	wrong, other := bytes.Clone(payload), g.key
	for i := range wrong {
		wrong[i]++
	}
	h.Code++ // also an answer that has no bytes is another
	other.Secret[3]++
	sequence, anothers := tagged(h, wrong, g.key, g.flags), tagged(h, wrong, g.key, g.flags)
	sequence[51]++
	anothers[47]++
	refusal := api.Header{Type: api.TypeError, Code: uint8(api.CodeBadTag), Workload: h.Workload, Request: h.Request, Count: 1}
	all := [][]byte{
		append(h.Append(nil), wrong...), sequence, anothers, refusal.Append(nil),
		tagged(h, wrong, other, g.flags), tagged(h, wrong, g.key, g.flags^api.FlagOddKey), tagged(h, wrong, g.key, g.flags^api.FlagTagPayload),
		tagged(h, wrong, g.key, g.flags&^api.FlagTag),
	}
	if g.flags&api.FlagTagPayload != 0 && len(wrong) > 0 {
		h.Code--
		changed := tagged(h, wrong, g.key, g.flags)
		changed[len(changed)-1]++
		all = append(all, changed)
	}
	return all
}

// Clients with a key tag each packet, over the payload or without it, with a sequence number that no other has, and take only answers that are tagged
// as their requests are.
func TestTags(t *testing.T) {
	const f = api.RPCFragment
	calls := []call{
		{Workload: echoPacket, Method: 5000}, {Workload: echoPacket, Method: 900, Once: true}, {Workload: echoAssemble, Body: text(5*f + 3)},
		{Workload: greyStream, Body: text(20 * f)}, {Workload: keepStream, Body: text(70 * f)}, {Workload: echoWhole, Body: text(2 * f)},
	}
	for n := range 18 {
		calls = append(calls, call{Workload: echoPacket, Body: text(n)}, call{Workload: echoStream, Body: text(api.RPCMaxPayload - n)})
	}
	for _, c := range []struct {
		key        uint32
		headerOnly bool
		faults     rpcserver.Faults
	}{
		{key: 1}, {key: 2}, {key: 3, headerOnly: true},
		{key: 4, headerOnly: true, faults: rpcserver.Faults{Seed: 1, Drop: 0.1, Reorder: 0.1, Duplicate: 0.1}},
		{key: 5, faults: rpcserver.Faults{Seed: 2, Drop: 0.1}},
	} {
		s := serve(t, "127.0.0.1:0", c.faults)
		g := tagging(t, s.Addr(), keyOf(c.key), !c.headerOnly)
		each(t, func(t *testing.T, d *driver) {
			d.open(settings{Address: g.conn.LocalAddr().String(), Key: textOf(t, g.key), TagHeaderOnly: c.headerOnly})
			d.answered(t, true, calls...)
			d.answered(t, false, calls...)
			if st := d.stats(); st.Restarts > 0 || st.Malformed < uint64(2*len(calls)) {
				t.Errorf("%+v", st)
			}
			d.close()
		})
		g.mu.Lock()
		if g.types[api.TypePull] == 0 || g.types[api.TypeAck] == 0 || c.faults.Drop > 0 && g.resends == 0 {
			t.Errorf("key %d: clients sent %v, %d again", c.key, g.types, g.resends)
		}
		g.mu.Unlock()
	}
}

// An error without a tag may be anybody's, so it ends no call: at the deadline, the client says what it was, and does not start over.
func TestUntaggedErrors(t *testing.T) {
	const wait = 2 * time.Second // in which an answer comes on any machine
	g := tagging(t, netip.AddrPort{}, keyOf(2), true)
	each(t, func(t *testing.T, d *driver) {
		d.open(settings{Address: g.conn.LocalAddr().String(), TimeoutMS: int(wait / time.Millisecond), Key: textOf(t, g.key)})
		for _, deadline := range []time.Duration{0, wait} {
			var calls []call
			for code := range names {
				calls = append(calls, call{Workload: 1, Method: uint32(code), DeadlineUS: deadline.Microseconds()})
			}
			began := time.Now()
			for i, o := range d.call(true, calls...) {
				if o.Error != names[api.Code(calls[i].Method)] {
					t.Errorf("code %d: %+v", calls[i].Method, o)
				}
			}
			if took := time.Since(began); took < wait {
				t.Errorf("the calls ended after %v", took)
			}
		}
		if st := d.stats(); st.Restarts > 0 || st.Malformed > 0 {
			t.Errorf("%+v", st)
		}
		d.close()
	})
}

// A client that calls by name tags as well. At the deadline it does not begin anew for what anybody may have said, but the next call asks.
func TestTagsByName(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	before, now := tagging(t, netip.AddrPort{}, keyOf(2), true), tagging(t, s.Addr(), keyOf(2), true)
	known := &directory{function: echoFunction(s.Addr())}
	private, _ := gateways(t, known)
	each(t, func(t *testing.T, d *driver) {
		known.move(echoPacket, before.conn.LocalAddr().(*net.UDPAddr).AddrPort())
		d.open(settings{Gateway: private, Key: textOf(t, before.key)})
		before.attempts() // of the client before
		unknown := call{Name: "echo", Method: uint32(api.CodeUnknownWorkload), DeadlineUS: 2_000_000}
		o := d.call(false, unknown)[0]
		if attempts := before.attempts(); o.Error != "unknown workload" || attempts != 1 {
			t.Errorf("%+v in %d attempts", o, attempts)
		}
		known.move(echoPacket, now.conn.LocalAddr().(*net.UDPAddr).AddrPort())
		d.answered(t, false, call{Name: "echo", Workload: echoPacket, Method: 3000})
		d.close()
	})
}

// A client without a key has no tags, and takes answers with any.
func TestWithoutKey(t *testing.T) {
	s := serve(t, "127.0.0.1:0", rpcserver.Faults{})
	each(t, func(t *testing.T, d *driver) {
		s.Lose(func(h *api.Header) bool {
			if h.Flags&tagFlags != 0 || h.Tag != 0 || h.Client != 0 || h.Sequence != 0 {
				t.Errorf("the client sent %+v", h)
			}
			return false
		})
		d.open(settings{Address: s.Addr().String()})
		d.answered(t, true, call{Workload: echoPacket, Body: text(10)}, call{Workload: echoAssemble, Body: text(5000)})
		d.close()
	})
}

// A NIC that requires tags serves every client with a key, in one packet and in many, over a good network and a bad one, and nobody without the right key.
func TestTagsOnNIC(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and loads BPF programs: needs root")
	}
	const tenant = 7 // the namespace's number
	n, key, other := startNIC(t), keyOf(1), keyOf(1)
	other.Secret[3]++
	for i, name := range []string{"web_server", "image_transformer"} {
		a, err := compiler.Build(t.Context(), filepath.Join("../../lambdas", name), compiler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := stand.Deployment(a, uint32(i+1), nil)
		d.NamespaceID = tenant
		if err := n.Deploy(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Limit(t.Context(), backend.Limits{Keys: map[uint32]api.Keys{tenant: {Required: true, Keys: []api.Key{key}}}}); err != nil {
		t.Fatal(err)
	}
	pixels, grey := measure.Image(128, 128)
	calls := []call{{Workload: webServer, Body: []byte("/hello")}, {Workload: webServer, Body: []byte("/hello"), Once: true}, {Workload: imageTransformer, Body: pixels}}
	want := [][]byte{[]byte("Hello from the NIC.\n"), []byte("Hello from the NIC.\n"), grey}
	bad := behind(t, n.Addr(), impair.Faults{Seed: 9, Drop: 0.05, Duplicate: 0.05, Reorder: 0.1, Jitter: time.Millisecond})
	each(t, func(t *testing.T, d *driver) {
		for _, address := range []netip.AddrPort{n.Addr(), bad.Addr()} {
			for _, headerOnly := range []bool{false, true} {
				d.open(settings{Address: address.String(), Key: textOf(t, key), TagHeaderOnly: headerOnly})
				for i, o := range d.call(true, calls...) {
					if o.Error != "" || !bytes.Equal(o.Body, want[i]) {
						t.Errorf("header only %t, call %d: %+v", headerOnly, i, o)
					}
				}
				d.close()
			}
		}
		hurried := calls[0]
		hurried.DeadlineUS = 2_000_000
		d.open(settings{Address: n.Addr().String(), Key: textOf(t, other)})
		if o := d.call(false, hurried)[0]; o.Error != "bad tag" {
			t.Errorf("another key: %+v", o)
		}
		d.close()
		d.open(settings{Address: n.Addr().String()})
		if o := d.call(false, hurried)[0]; o.Error != "bad tag" {
			t.Errorf("no key: %+v", o)
		}
		d.close()
	})
}

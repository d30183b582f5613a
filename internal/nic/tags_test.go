package nic

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// keyed gives the namespace tenant keys with these numbers, and no other namespace any.
func keyed(t testing.TB, b backend.Limiting, required bool, numbers ...uint32) {
	t.Helper()
	k := api.Keys{Required: required}
	for _, number := range numbers {
		k.Keys = append(k.Keys, packets.KeyOf(number))
	}
	if err := b.Limit(t.Context(), backend.Limits{Keys: map[uint32]api.Keys{tenant: k}}); err != nil {
		t.Fatal(err)
	}
}

var sequences atomic.Uint32

// tagged tags a packet by a key, with a sequence number of its own.
func tagged(f packets.Frame, key uint32) packets.Frame {
	k, sequence := packets.KeyOf(key), sequences.Add(1)
	f.RPC.Key, f.RPC.Sequence = &k, &sequence
	return f
}

// request is a request of one packet for a lambda of the namespace tenant.
func request(payload string) packets.Frame {
	return packets.Frame{RPC: packets.RPC{Workload: "packet", Method: methodEcho, Request: requests.Add(1), Payload: payload, Room: len(payload) + 64}}
}

// newTagged is a NIC with a lambda of each mode in the namespace tenant.
func newTagged(t testing.TB) *NIC {
	t.Helper()
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)), of(tenant, version(t, workloads["assemble"], 1, assembleSpec)))
	return n
}

// wantTag checks that an answer is tagged by a key, as its request was.
func wantTag(t testing.TB, f packets.Frame, h api.Header, payload []byte) {
	t.Helper()
	if h.Tag != packets.Tag(f.RPC.Key, h.Flags, h.Append(nil), payload) || h.Flags&api.FlagTag == 0 || h.Flags&api.FlagTagPayload != f.RPC.Flags&api.FlagTagPayload {
		t.Errorf("flags %#x tag %#x: an answer with a wrong tag", h.Flags, h.Tag)
	}
}

// A request with the right tag is answered with one, by either key, over the payload or without it, of any length.
func TestTags(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1, 2)
	lengths := []int{127, 128, 129, 255, 256, 1376, 1387, 1388} // also at the ends of blocks (bpf/auth.h)
	for i := range 40 {
		lengths = append(lengths, i)
	}
	for _, ipv6 := range []bool{false, true} {
		for _, length := range lengths {
			for key := range uint32(4) {
				f := request(string(randomBytes(length)))
				f.RPC.Room = length
				f.IPv6 = ipv6
				if key >= 2 {
					f.RPC.Flags |= api.FlagTagPayload
				}
				f = tagged(f, key%2+1)
				h, payload := send(t, n, f)
				if h.Type != api.TypeResponse || string(payload) != f.RPC.Payload {
					t.Fatalf("IPv6 %t, %d bytes, key %d: got %+v", ipv6, length, key%2+1, h)
				}
				wantTag(t, f, h, payload)
			}
		}
	}
	if s := accounted(t, n, tenant); s.BadTags != 0 || s.Replayed != 0 {
		t.Errorf("counted %+v", s)
	}
}

// A tag is right for one packet alone: with another bit anywhere in what it covers, there is no answer of a lambda.
func TestForgedTags(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1)
	f := request("some bytes that are told")
	f.RPC.Flags |= api.FlagTagPayload
	f.Checksum = "none"
	refused := uint64(0)
	for bit := range (api.RPCHeaderLen + len(f.RPC.Payload)) * 8 {
		f = tagged(f, 1)
		frame := build(t, &f)
		frame[14+20+8+bit/8] ^= 1 << (bit % 8)
		verdict, out := arrive(t, n, frame)
		if verdict != "reply" {
			continue
		}
		h, _, err := api.ParsePacket(out[14+20+8:])
		if err != nil || h.Type != api.TypeError {
			t.Fatalf("bit %d: got %+v, %v", bit, h, err)
		}
		if h.Code == uint8(api.CodeBadTag) {
			refused++
		}
	}
	if s := accounted(t, n, tenant); s.BadTags < refused || refused < 64+uint64(len(f.RPC.Payload))*8 || s.Requests != 0 {
		t.Errorf("%d were refused; counted %+v", refused, s)
	}
}

// What the tag over the header does not cover may change, and who does not ask for tags is served without one.
func TestTagOfHeader(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, false, 2)
	f := tagged(request("some bytes"), 2)
	f.Checksum = "none"
	frame := build(t, &f)
	frame[14+20+8+api.RPCHeaderLen]++
	if verdict, _ := inject(t, n, frame); verdict != "reply" {
		t.Errorf("another payload: verdict %s", verdict)
	}
	if h, _ := send(t, n, request("some bytes")); h.Type != api.TypeResponse || h.Flags != 0 || h.Tag != 0 {
		t.Errorf("without a tag: got %+v", h)
	}
}

// Missing and wrong tags are refused with an error where nothing was executed, and with silence elsewhere.
func TestWhatIsAnsweredWithoutTag(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1)
	anonymous, again := tagged(request("x"), 1), request("x")
	anonymous.RPC.Client = new(uint32)
	again.RPC.Flags |= api.FlagResend
	for what, f := range map[string]packets.Frame{
		"no tag": request("x"), "a key that there is not": tagged(request("x"), 2), "another key of the same slot": tagged(request("x"), 3), "no client": anonymous,
	} {
		h, _ := send(t, n, f)
		wantCode(t, what, h, api.CodeBadTag)
		if h.Tag != 0 {
			t.Errorf("%s: the error has a tag", what)
		}
	}
	done, typ := request("x"), api.TypeAck
	done.RPC.Type, done.RPC.Flags = &typ, api.FlagDone
	if h, _ := send(t, n, again); h.Type != 0 {
		t.Errorf("sent again: got %+v", h)
	}
	if h, _ := send(t, n, done); h.Type != 0 {
		t.Errorf("an acknowledgement: got %+v", h)
	}
	if s := accounted(t, n, tenant); s.BadTags != 6 || s.Errors != 4 || s.Requests != 0 || s.BytesIn != 0 {
		t.Errorf("counted %+v, want 6 refused, 4 of them with an error", s)
	}
}

// A message of many packets, its acknowledgements and the pulls of its reply are tagged, each for itself. Nobody else can add to it, or end it.
func TestTagsOfMessage(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1)
	body := randomBytes(120)
	parts := fragments("assemble", methodStamp, body, 50)
	for i := range parts {
		parts[i].RPC.Flags |= api.FlagTagPayload
	}
	forged := parts[1]
	forged.RPC.Payload = strings.Repeat("!", 50)
	send(t, n, tagged(parts[0], 1))
	if h, _ := send(t, n, forged); h.Type != 0 {
		t.Errorf("a packet of another's message: got %+v", h)
	}
	send(t, n, tagged(parts[1], 1))
	last := tagged(parts[2], 1)
	first, payload := send(t, n, last)
	wantTag(t, last, first, payload)
	if first.Type != api.TypeResponse || first.Count < 2 {
		t.Fatalf("got %+v, want a reply of several packets", first)
	}
	end := parts[0]
	typ := api.TypeAck
	end.RPC.Type, end.RPC.Flags, end.RPC.Payload = &typ, api.FlagDone, ""
	send(t, n, end) // without a tag
	p := pull(parts[0], first, 1)
	if h, _ := send(t, n, p); h.Type != 0 {
		t.Errorf("a pull without a tag: got %+v", h)
	}
	p.RPC.Flags |= api.FlagTagPayload
	p = tagged(p, 1)
	h, payload := send(t, n, p)
	if h.Type != api.TypeResponse || h.Index != 1 {
		t.Fatalf("pulled %+v", h)
	}
	wantTag(t, p, h, payload)
}

// Keys rotate while both are good; one that is gone is good no more.
func TestKeysRotate(t *testing.T) {
	n := newTagged(t)
	for _, c := range []struct{ have, good, bad []uint32 }{
		{[]uint32{1}, []uint32{1}, []uint32{2}},
		{[]uint32{1, 2}, []uint32{1, 2}, []uint32{3}},
		{[]uint32{3, 2}, []uint32{2, 3}, []uint32{1, 4}},
		{[]uint32{3}, []uint32{3}, []uint32{1, 2}},
		{nil, nil, []uint32{1, 2, 3}},
	} {
		keyed(t, n, true, c.have...)
		for _, key := range c.good {
			if h, _ := send(t, n, tagged(request("x"), key)); h.Type != api.TypeResponse {
				t.Errorf("keys %v: key %d: got %+v", c.have, key, h)
			}
		}
		for _, key := range c.bad {
			h, _ := send(t, n, tagged(request("x"), key))
			wantCode(t, "a key that is gone", h, api.CodeBadTag)
		}
	}
}

// numbered asks with a sequence number, and says whether there was an answer.
func numbered(t testing.TB, n *NIC, client, sequence uint32) bool {
	f := tagged(request("x"), 1)
	f.RPC.Client, f.RPC.Sequence = &client, &sequence
	h, _ := send(t, n, f)
	return h.Type == api.TypeResponse
}

// No sequence number is good twice; each of the latest is good once, in any order; clients do not disturb each other.
func TestReplays(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1)
	r := seed.Rand(t)
	const window = 992 // the latest block of 32 may have begun only now
	for client := range uint32(3) {
		used, highest := map[uint32]bool{}, uint32(0)
		if client == 2 {
			highest = 1<<32 - 3000 // the highest numbers there are
		}
		for range 3000 {
			sequence := highest
			switch r.IntN(3) {
			case 0:
				sequence += r.Uint32N(40)
			case 1:
				sequence -= min(sequence, r.Uint32N(2*window))
			default:
				sequence += r.Uint32N(2)
			}
			sequence = max(sequence, highest-min(highest, 5000))
			answered := numbered(t, n, client+1, sequence)
			if answered && used[sequence] {
				t.Fatalf("client %d: sequence number %d was good twice", client+1, sequence)
			}
			if !answered && !used[sequence] && sequence+window > max(highest, window) {
				t.Fatalf("client %d: sequence number %d was not good, and %d the highest", client+1, sequence, highest)
			}
			used[sequence] = true
			highest = max(highest, sequence)
		}
	}
	if s := accounted(t, n, tenant); s.Replayed == 0 || s.BadTags != 0 || s.Requests+s.Replayed != 9000 {
		t.Errorf("counted %+v", s)
	}
}

// When packets of one client come to several CPUs at once, each number is still good once.
func TestReplaysAtOnce(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1)
	const numbers, askers = 900, 4
	var answered [numbers]atomic.Uint32
	var work sync.WaitGroup
	for range askers {
		work.Go(func() {
			for i := range answered {
				if numbered(t, n, 7, uint32(i)) {
					answered[i].Add(1)
				}
			}
		})
	}
	work.Wait()
	for i := range answered {
		if got := answered[i].Load(); got != 1 {
			t.Errorf("sequence number %d was good %d times", i, got)
		}
	}
	if s := accounted(t, n, tenant); s.Requests != numbers || s.Replayed != numbers*(askers-1) {
		t.Errorf("counted %+v", s)
	}
}

// A namespace with more clients than there is room for has its own forgotten. Another loses only what it has beyond half of a set's places.
func TestManyClients(t *testing.T) {
	n := newTagged(t)
	const crowd, places = tenant + 1, 8 // in a set
	clients := 2 * places * n.Limits().LnClients.MaxEntries()
	deploy(t, n, of(crowd, version(t, workloads["web"], 1, packetSpec)))
	k := api.Keys{Required: true, Keys: []api.Key{packets.KeyOf(1)}}
	if err := n.Limit(t.Context(), backend.Limits{Keys: map[uint32]api.Keys{tenant: k, crowd: k}}); err != nil {
		t.Fatal(err)
	}
	others := n.Limits().LnClients.MaxEntries() // one in each set, on average
	for client := range others {
		if !numbered(t, n, client+1, 5) {
			t.Fatalf("client %d is not served", client+1)
		}
	}
	f := tagged(request("x"), 1)
	f.RPC.Workload = "web"
	for client := range clients {
		other := client + 1
		f.RPC.Client = &other
		if h, _ := send(t, n, f); h.Type != api.TypeResponse {
			t.Fatalf("client %d of the crowd: got %+v", other, h)
		}
	}
	lost := uint32(0)
	for client := range others {
		if numbered(t, n, client+1, 5) {
			lost++
		}
	}
	if lost > others/100 { // of 4,096 sets, some 15 have more than four of as many clients
		t.Errorf("%d of %d clients were forgotten for another namespace's", lost, others)
	}
	forgotten := 0
	for client := range uint32(1000) {
		other := client + 1
		f.RPC.Client = &other
		if h, _ := send(t, n, f); h.Type == api.TypeResponse {
			forgotten++
		}
	}
	if forgotten < 900 {
		t.Errorf("of the crowd's first 1000 clients, %d were forgotten", forgotten)
	}
}

// A namespace's key tags nothing for another namespace.
func TestKeyOfAnotherNamespace(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, of(tenant, version(t, workloads["packet"], 1, packetSpec)))
	k := api.Keys{Required: true, Keys: []api.Key{packets.KeyOf(1)}}
	if err := n.Limit(t.Context(), backend.Limits{Keys: map[uint32]api.Keys{tenant + 1: k, tenant: {Required: true, Keys: []api.Key{packets.KeyOf(3)}}}}); err != nil {
		t.Fatal(err)
	}
	h, _ := send(t, n, tagged(request("x"), 1))
	wantCode(t, "another's key", h, api.CodeBadTag)
	// The index of a namespace that was removed goes to another one, with other keys.
	if err := n.Limit(t.Context(), backend.Limits{Keys: map[uint32]api.Keys{tenant + api.MaxNamespaces: k}}); err != nil {
		t.Fatal(err)
	}
	if h, _ := send(t, n, tagged(request("x"), 1)); h.Type != api.TypeResponse {
		t.Errorf("got %+v", h)
	}
}

// BenchmarkTag tells what the NIC program takes for a request, without its answer's way through the kernel, and so what the tags of both add.
func BenchmarkTag(b *testing.B) {
	stats, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	n := newTagged(b)
	keyed(b, n, false, 1)
	for _, c := range []struct {
		name   string
		tagged bool
		flags  api.Flag
		bytes  int
	}{{"none", false, 0, 8}, {"header", true, 0, 8}, {"payload8", true, api.FlagTagPayload, 8}, {"none1024", false, 0, 1024}, {"payload1024", true, api.FlagTagPayload, 1024}} {
		b.Run(c.name, func(b *testing.B) {
			f := request(string(make([]byte, c.bytes)))
			f.RPC.Flags, f.Checksum = c.flags, "none"
			if c.tagged {
				f = tagged(f, 1)
			}
			frame := build(b, &f)
			before := runTime(b, n)
			for b.Loop() {
				if c.tagged { // as a client does
					binary.BigEndian.PutUint32(frame[14+20+8+48:], sequences.Add(1))
					rpc := frame[14+20+8:]
					binary.BigEndian.PutUint64(rpc[api.TaggedHeaderLen:], packets.Tag(f.RPC.Key, api.Flag(rpc[4]), rpc[:api.RPCHeaderLen], []byte(f.RPC.Payload)))
				}
				if verdict, _ := inject(b, n, frame); verdict != "reply" {
					b.Fatal(verdict)
				}
			}
			after := runTime(b, n)
			b.ReportMetric(float64(after.Runtime-before.Runtime)/float64(after.RunCount-before.RunCount), "ns/packet")
		})
	}
}

func runTime(b *testing.B, n *NIC) *ebpf.ProgramStats {
	s, err := n.Root().Stats()
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// The answer to a request whose lambda called a service is tagged as well, though another packet became that answer.
func TestTagsOfCall(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		n := open(t, pacedConfig(t))
		to, host := n.Addr().String(), n.HostAddr()
		if ipv6 {
			to, host = netip.AddrPortFrom(n.Addr6(), api.RPCPort).String(), hostAddr6(n)
		}
		f := newFake(t, host)
		deploy(t, n, of(tenant, kvRevision(t, 1, f.addr(), longest)))
		keyed(t, n, true, 2)
		client, err := lambdanic.Dial(to, lambdanic.WithKey(packets.KeyOf(2)))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		answered := make(chan error, 1)
		go func() {
			r, err := client.Call(t.Context(), lambdanic.Request{Workload: kvWorkload, Method: methodGet, Body: []byte("key")})
			if err == nil && string(r.Body) != "key=data" {
				err = fmt.Errorf("answered %q", r.Body)
			}
			answered <- err
		}()
		q := f.receive()
		f.answer(q, 0, 1, value("key", "data"))
		if err := <-answered; err != nil {
			t.Errorf("IPv6 %t: %v", ipv6, err)
		}
	}
}

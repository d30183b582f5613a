package process

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

const tenant = 11 // a namespace's number

func keyOf(number uint32) *api.Key {
	k := packets.KeyOf(number)
	return &k
}

// keyed gives the namespace tenant keys with these numbers.
func keyed(t testing.TB, b *Backend, required bool, numbers ...uint32) {
	t.Helper()
	k := api.Keys{Required: required}
	for _, number := range numbers {
		k.Keys = append(k.Keys, *keyOf(number))
	}
	l := backend.Limits{Quotas: map[uint32]api.Quota{tenant: {}}, Keys: map[uint32]api.Keys{tenant: k}}
	if err := b.Limit(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

// A taggedClient sends packets, each with the next sequence number.
type taggedClient struct {
	*rawClient
	sequence uint32
}

func (c *taggedClient) build(r packets.RPC) []byte {
	if r.Workload == "" {
		r.Workload = "fixture"
	}
	if r.Request == 0 {
		c.next++
		r.Request = c.next
	}
	if r.Sequence == nil {
		c.sequence++
		n := c.sequence
		r.Sequence = &n
	}
	return r.Build(map[string]uint32{"fixture": workload})
}

// ask sends a packet, and returns its answer, checked to be tagged as the packet is.
func (c *taggedClient) ask(r packets.RPC) (api.Header, []byte) {
	c.t.Helper()
	c.send(c.build(r))
	h, p := c.receive()
	tag := r.Flags & api.FlagTagPayload
	if r.Key != nil {
		tag |= api.FlagTag | api.Flag(r.Key.Number%2)*api.FlagOddKey
	}
	refused := h.Type == api.TypeError && h.Code == uint8(api.CodeBadTag)
	switch got := h.Flags & (api.FlagTag | api.FlagTagPayload | api.FlagOddKey); {
	case r.Key == nil || refused:
		if got != 0 || h.Tag != 0 {
			c.t.Errorf("flags %#x tag %#x of an answer that has none", h.Flags, h.Tag)
		}
	case got != tag || h.Tag != packets.Tag(r.Key, h.Flags, h.Append(nil), p):
		c.t.Errorf("flags %#x tag %#x: an answer with a wrong tag", h.Flags, h.Tag)
	}
	return h, p
}

// echoed checks that a request is served.
func (c *taggedClient) echoed(what string, r packets.RPC) {
	c.t.Helper()
	if h, p := c.ask(r); h.Type != api.TypeResponse || string(p) != r.Payload {
		c.t.Errorf("%s: got %+v %q", what, h, p)
	}
}

// refused checks that a request gets the error that its tag is bad.
func (c *taggedClient) refused(what string, r packets.RPC) {
	c.t.Helper()
	if h, _ := c.ask(r); h.Type != api.TypeError || h.Code != uint8(api.CodeBadTag) {
		c.t.Errorf("%s: got %+v", what, h)
	}
}

// dropped checks that a packet has no answer: that of a good request comes next.
func (c *taggedClient) dropped(what string, b []byte) {
	c.t.Helper()
	c.send(b)
	good := c.build(packets.RPC{Payload: "good", Key: keyOf(1)})
	sent, _, _ := api.ParsePacket(good)
	c.send(good)
	if h, _ := c.receive(); h.Request != sent.Request {
		c.t.Errorf("%s: got %+v", what, h)
	}
}

// tagged deploys a lambda in the namespace tenant, which requires tags by key 1.
func tagged(t *testing.T, host string, mode api.MessageMode, name string) (*Backend, *taggedClient) {
	t.Helper()
	b := newBackend(t, host, shortdir.New(t))
	keyed(t, b, true, 1)
	d := deployment(workload, 3, mode, fixture(t, name))
	d.NamespaceID = tenant
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	return b, &taggedClient{rawClient: dial(t, endpoint)}
}

// Requests with the right tag are served, and their answers tagged; no others are.
func TestTags(t *testing.T) {
	b, c := tagged(t, checkedHost, api.ModePacket, "packet")
	for n := range 40 {
		body := string(randomBytes(n))
		c.echoed("over the header", packets.RPC{Payload: body, Room: n + n%3, Key: keyOf(1)})
		c.echoed("over both", packets.RPC{Payload: body, Key: keyOf(1), Flags: api.FlagTagPayload})
	}
	c.echoed("a full packet", packets.RPC{Payload: string(randomBytes(api.RPCMaxPayload)), Key: keyOf(1), Flags: api.FlagTagPayload})
	c.refused("no tag", packets.RPC{})
	c.refused("no such key", packets.RPC{Key: keyOf(2)})
	c.refused("another key", packets.RPC{Key: keyOf(3)})
	c.refused("no client", packets.RPC{Key: keyOf(1), Client: new(uint32)})
	length := uint16(9)
	c.refused("more payload than there is", packets.RPC{Payload: "8 bytes.", Length: &length, Key: keyOf(1), Flags: api.FlagTagPayload})
	c.dropped("sent again", c.build(packets.RPC{Flags: api.FlagResend}))
	if h, _ := c.ask(packets.RPC{Method: methodDivide, Payload: "x", Key: keyOf(1)}); h.Type != api.TypeError || h.Code != uint8(api.CodeLambdaFault) {
		t.Errorf("a fault: got %+v", h)
	}
	if s := stats(t, b); s.BadTags != 6 || s.Replayed != 0 || s.Requests != 83 {
		t.Errorf("counted %+v", s)
	}
}

func stats(t *testing.T, b *Backend) api.Stats {
	t.Helper()
	list, err := b.Status(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("status %v (%v)", list, err)
	}
	return list[0].Stats
}

// A tag is right for one packet alone: with another bit anywhere in what it covers, no lambda runs.
func TestForgedTags(t *testing.T) {
	b, c := tagged(t, checkedHost, api.ModePacket, "packet")
	r := packets.RPC{Payload: "some bytes", Key: keyOf(1), Flags: api.FlagTagPayload}
	bits, refused := 8*len(c.build(r)), uint64(0)
	for bit := range bits {
		forged, good := c.build(r), c.build(packets.RPC{Request: 7, Key: keyOf(1)})
		forged[bit/8] ^= 1 << (bit % 8)
		c.send(forged)
		c.send(good)
		for h, _ := c.receive(); h.Request != 7; h, _ = c.receive() {
			if h.Type != api.TypeError {
				t.Fatalf("bit %d: got %+v", bit, h)
			}
			if h.Code == uint8(api.CodeBadTag) {
				refused++
			}
		}
	}
	if s := stats(t, b); s.Requests != uint64(bits) || s.BadTags < refused || refused < 64+80 {
		t.Errorf("%d were refused; counted %+v", refused, s)
	}
}

// A packet is good once: for the process that took it, for the next one, and for one that comes after a death.
func TestReplays(t *testing.T) {
	b, c := tagged(t, plainHost, api.ModePacket, "packet")
	replays := uint64(0)
	again := func(when string, sent ...[]byte) {
		t.Helper()
		for _, p := range sent {
			c.dropped(when, p)
			replays++
		}
	}
	first := c.build(packets.RPC{Payload: "first", Key: keyOf(1)})
	c.send(first)
	c.receive()
	again("at once", first)
	old := c.build(packets.RPC{Payload: "old", Key: keyOf(1)})
	c.sequence += 1024
	c.echoed("much later", packets.RPC{Key: keyOf(1)})
	again("below the window", first, old)
	if s := stats(t, b); s.Replayed != replays {
		t.Errorf("counted %d replays, want %d", s.Replayed, replays)
	}
	d := deployment(workload, 4, api.ModePacket, fixture(t, "packet"))
	d.NamespaceID, d.Spec.Once = tenant, true
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	again("to the next process", first, old)
	taken := c.build(packets.RPC{Method: methodSmash, Payload: "x", Key: keyOf(1)})
	c.send(taken)
	if h, _ := c.receive(); h.Type != api.TypeError || h.Code != uint8(api.CodeLambdaFault) || h.Tag != packets.Tag(keyOf(1), h.Flags, h.Append(nil), nil) {
		t.Errorf("the process's last answer is %+v", h)
	}
	eventually(t, "a new process", func() bool {
		list, _ := b.Status(t.Context())
		return len(list) == 1 && list[0].Stats.Requests == 0
	})
	again("after a death", first, taken)
}

// Keys change while a process runs.
func TestKeysChange(t *testing.T) {
	b, c := tagged(t, checkedHost, api.ModePacket, "packet")
	keyed(t, b, true, 1, 2)
	c.echoed("the first of two", packets.RPC{Key: keyOf(1)})
	c.echoed("the second of two", packets.RPC{Key: keyOf(2)})
	keyed(t, b, true, 2)
	c.refused("a key that was removed", packets.RPC{Key: keyOf(1)})
	keyed(t, b, true, 2, 3)
	c.refused("a key that another replaced", packets.RPC{Key: keyOf(1)})
	c.echoed("the key after the removed one", packets.RPC{Key: keyOf(3)})
	keyed(t, b, false, 2, 3)
	c.echoed("without a tag where none is required", packets.RPC{})
	c.refused("a wrong tag where none is required", packets.RPC{Key: keyOf(1)})
	keyed(t, b, false)
	c.refused("a tag where there is no key", packets.RPC{Key: keyOf(3)})
}

// The packets of a message, and the pulls of its reply, are tagged each for itself. Nobody else can add to it, or end it.
func TestTagsOfMessage(t *testing.T) {
	_, c := tagged(t, checkedHost, api.ModeAssemble, "assemble")
	body, count, length := string(randomBytes(120)), uint32(3), uint32(120)
	part := func(i uint32, k *api.Key) packets.RPC {
		return packets.RPC{Request: 99, Index: i, Count: &count, MessageLen: &length, Payload: body[i*40:][:40], Key: k, Flags: api.FlagTagPayload | api.FlagAckWanted}
	}
	for i := range count - 1 {
		if h, _ := c.ask(part(i, keyOf(1))); h.Type != api.TypeAck {
			t.Fatalf("packet %d: got %+v", i, h)
		}
	}
	forged := part(2, nil)
	forged.Payload = strings.Repeat("!", 40)
	c.send(c.build(forged))
	first, text := c.ask(part(2, keyOf(1)))
	if first.Type != api.TypeResponse || first.Count != 3 || first.MessageLen != length {
		t.Fatalf("got %+v, want a reply of 3 packets", first)
	}
	ack, pull := api.TypeAck, api.TypePull
	end := part(0, nil)
	end.Type, end.Payload, end.Flags = &ack, "", api.FlagDone
	c.send(c.build(end))
	size := uint32(40)
	for i := uint32(1); i < count; i++ {
		p := packets.RPC{Type: &pull, Request: 99, Index: i, Count: &count, MessageLen: &size, Revision: first.Revision, Room: 40, Flags: api.FlagTagPayload}
		c.send(c.build(p))
		p.Key = keyOf(1)
		h, more := c.ask(p)
		if h.Type != api.TypeResponse || h.Index != i {
			t.Fatalf("pulled %+v", h)
		}
		text = append(text, more...)
	}
	if string(text) != string(reversed([]byte(body))) {
		t.Errorf("the reply is %q", text)
	}
}

// A process starts once the keys of its namespace are known, and another daemon's process gets them, too.
func TestKeysAreKnownFirst(t *testing.T) {
	dir := shortdir.New(t)
	b := newBackend(t, checkedHost, dir)
	d := deployment(workload, 3, api.ModePacket, fixture(t, "packet"))
	d.NamespaceID = tenant
	if err := b.Deploy(t.Context(), d); !errors.Is(err, errKeysUnknown) {
		t.Fatalf("before the first keys: %v", err)
	}
	keyed(t, b, true, 1)
	if err := b.Deploy(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	endpoint, _ := b.Endpoint(workload)
	c := &taggedClient{rawClient: dial(t, endpoint)}
	c.echoed("at first", packets.RPC{Key: keyOf(1)})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	next := newBackend(t, checkedHost, dir)
	if _, err := next.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.refused("between two daemons, without a tag", packets.RPC{})
	keyed(t, next, true, 2)
	c.refused("a key that was removed meanwhile", packets.RPC{Key: keyOf(1)})
	c.echoed("the next daemon's", packets.RPC{Key: keyOf(2)})
	if err := next.Remove(t.Context(), workload); err != nil {
		t.Fatal(err)
	}
	if err := next.Limit(t.Context(), backend.Limits{}); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// What is no key is refused, and the keys before it stay.
func TestKeysThatAreNone(t *testing.T) {
	b, c := tagged(t, checkedHost, api.ModePacket, "packet")
	in, err := b.get(workload, false)
	if err != nil {
		t.Fatal(err)
	}
	good := strings.Repeat("0a", 16)
	for _, args := range []string{"required", "required -", "perhaps - -", "required - 00", "required - " + good + "00", "required - " + strings.Repeat("0g", 16), "optional " + good[1:] + " -"} {
		if _, err := control(t.Context(), in.socket(), "keys %s", args); err == nil || strings.Contains(err.Error(), good) {
			t.Errorf("keys %s: %v", args, err)
		}
	}
	c.echoed("afterwards", packets.RPC{Key: keyOf(1)})
}

// A process that does not take its keys is ended. The next one has them.
func TestHungProcessGetsNoSecondChance(t *testing.T) {
	b, c := tagged(t, checkedHost, api.ModePacket, "packet")
	pid := pidOf(t, b, workload)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	controlTimeout = 10 * time.Millisecond // it never answers
	keyed(t, b, true, 2)
	controlTimeout = patience
	eventually(t, "another process", func() bool {
		list, _ := b.Status(t.Context())
		return len(list) == 1 && pidOf(t, b, workload) != pid
	})
	c.refused("the key that was removed", packets.RPC{Key: keyOf(1)})
	c.echoed("the next key", packets.RPC{Key: keyOf(2)})
}

// A process of an earlier version, which checks no tags or may send to anybody, is not adopted.
func TestEarlierVersionIsNotAdopted(t *testing.T) {
	for _, change := range []func(*record){func(r *record) { r.Namespace = nil }, func(r *record) { r.Services = nil }} {
		earlierVersion(t, change)
	}
}

func earlierVersion(t *testing.T, change func(*record)) {
	t.Helper()
	dir := shortdir.New(t)
	b := newBackend(t, checkedHost, dir)
	if err := b.Deploy(t.Context(), deployment(workload, 3, api.ModePacket, fixture(t, "packet"))); err != nil {
		t.Fatal(err)
	}
	in, err := b.get(workload, false)
	if err != nil {
		t.Fatal(err)
	}
	old := in.record
	change(&old)
	if err := errors.Join(b.Close(), old.write(in.dir)); err != nil {
		t.Fatal(err)
	}
	next := newBackend(t, checkedHost, dir)
	if adopted, err := next.Adopt(t.Context()); err != nil || len(adopted) > 0 || running(t, userOf(in.dir)) > 0 {
		t.Errorf("adopted %v (%v)", adopted, err)
	}
}

package nic

import (
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module/messages"
	"github.com/lambdanic/lambdanic/test/packets"
)

// ask sends a request of one packet with more of its header chosen.
func (c *kvConn) ask(h api.Header, body string) {
	c.t.Helper()
	h.Type, h.Length, h.Workload, h.Count, h.MessageLen = api.TypeRequest, uint16(len(body)), kvWorkload, 1, uint32(len(body))
	packet := append(h.Append(nil), body...)
	if _, err := c.conn.Write(append(packet, make([]byte, 64)...)); err != nil {
		c.t.Fatal(err)
	}
}

// A service has only as long to answer as the client waits. Then the client is told, and the time-out is counted.
func TestCallDeadline(t *testing.T) {
	n := open(t, pacedConfig(t))
	silent := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, silent.addr(), longest))
	c := dialNIC(t, n.Addr())
	c.ask(api.Header{Request: 7, DeadlineUS: 50_000}, "key")
	c.expectError(7, api.CodeDeadline)
	status, err := n.Status(t.Context())
	if err != nil || status[0].Stats.Late != 1 {
		t.Errorf("got %+v, %v, want one that was late", status, err)
	}
}

// A request that calls a service is executed at most once, too: its answer is remembered when it comes, or else that none came.
func TestCallOnce(t *testing.T) {
	n := open(t, pacedConfig(t))
	fake := newFake(t, n.HostAddr())
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest))
	c := dialNIC(t, n.Addr())
	request := api.Header{Request: 8, Flags: api.FlagOnce}
	c.ask(request, "key")
	q := fake.receive()
	c.ask(request, "key") // under way: no second query
	fake.answer(q, 0, 1, value("key", "first"))
	for range 3 {
		if h, body := c.receive(); h.Request != 8 || string(body) != "key=first" {
			t.Fatalf("got %+v %q", h, body)
		}
		c.ask(request, "key")
	}
	c.receive()
	deploy(t, n, kvRevision(t, 2, fake.addr(), 30*time.Millisecond))
	request.Request = 9
	c.ask(request, "late")
	for range 3 {
		c.expectError(9, api.CodeTimeout)
		c.ask(request, "late")
	}
	c.expectError(9, api.CodeTimeout)
	request.Request = 10
	c.ask(request, "last")
	for _, key := range []string{"late", "last"} { // a repeated query would be among them
		if q := fake.receive(); !strings.Contains(q.text, key) {
			t.Errorf("the service got %q, want the query for %q", q.text, key)
		}
	}
}

// A message whose client has given up makes room, long before its lambda's time-out.
func TestMessageDeadline(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, probe(t, workloads["assemble"], 1, "message: {mode: assemble, max: 64KiB, in_flight: 4, timeout: 10m}"))
	soon := uint32(100)
	for range 4 {
		f := fragments("assemble", methodStamp, randomBytes(3000), 1000)[0]
		f.RPC.DeadlineUS = &soon
		if h, _ := call(t, n, f); h.Type != api.TypeAck {
			t.Fatalf("got %+v", h)
		}
	}
	patient := fragments("assemble", methodStamp, randomBytes(3000), 1000)[0]
	eventually(t, "there is room", func() bool {
		h, _ := call(t, n, patient)
		return h.Type == api.TypeAck
	})
}

// Acknowledgements grant most to the message with the fewest packets left, less for each shorter message, and always more than has
// arrived.
func TestGrants(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, probe(t, workloads["assemble"], 1, "message: {mode: assemble, max: 1MiB, in_flight: 8}\nlimits: {memory: 16MiB}"))
	lists := [][]packets.Frame{}
	for _, count := range []int{500, 20, 300, 100} {
		lists = append(lists, fragments("assemble", methodStamp, randomBytes(count*1000), 1000))
	}
	// The test decides which messages the NIC heard of lately, so that a busy machine does not.
	granting := pinnedMap(t, n, "ln_granting")
	heard := func(at uint64) (before messages.Grants) {
		if err := granting.Lookup(uint32(0), &before); err != nil {
			t.Fatal(err)
		}
		after := before
		for i := range after.Message {
			after.Message[i].SeenNs = 0
			if after.Message[i].Message > 0 {
				after.Message[i].SeenNs = at
			}
		}
		if err := granting.Put(uint32(0), &after); err != nil {
			t.Fatal(err)
		}
		return before
	}
	granted := func(f packets.Frame) uint32 {
		h, p := call(t, n, f)
		if h.Type != api.TypeAck {
			t.Fatalf("got %+v", h)
		}
		last := h.Index&^63 + uint32(bits.Len64(packets.Bitmap(p))) - 1
		return h.Grant - last - 1
	}
	// window is what is granted when all messages were heard of lately; it notes this one.
	window := func(f packets.Frame) uint32 {
		t.Helper()
		began := now(t)
		later := began + uint64(time.Hour)
		heard(later)
		got := granted(f)
		noted := 0
		for _, m := range heard(later).Message {
			if m.Message > 0 && began <= m.SeenNs && m.SeenNs <= now(t) {
				noted++
			}
		}
		if noted != 1 {
			t.Errorf("%d messages are noted as heard of now, want 1", noted)
		}
		return got
	}
	for _, list := range lists {
		window(list[0])
	}
	for i, want := range []uint32{32, 256, 64, 128} {
		for _, at := range []int{9, 3} { // packets come in any order
			if got := window(lists[i][at]); got != want {
				t.Errorf("message of %d packets, packet %d: %d granted, want %d", len(lists[i]), at, got, want)
			}
		}
	}
	for i, f := range lists[1] { // the shortest is done
		if i != 0 && i != 3 && i != 9 {
			call(t, n, f)
		}
	}
	const lately = 20 * time.Millisecond // LN_GRANT_LATELY_NS (bpf/layout.h)
	var got uint32
	eventually(t, "a packet comes in time", func() bool {
		began := now(t)
		heard(began)
		got = granted(lists[3][20])
		return now(t) < began+uint64(lately)
	})
	if got != 128 {
		t.Errorf("the shortest was heard of lately: %d granted to the next one, want 128", got)
	}
	heard(now(t) - uint64(lately))
	if got := granted(lists[3][20]); got != 256 {
		t.Errorf("the shortest is silent: %d granted to the next one, want 256", got)
	}
}

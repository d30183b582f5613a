package nic

import (
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/packets"
)

// heldSpec has messages that last as long as their client wants, if it sends anything every two seconds.
const heldSpec = "message: {mode: assemble, max: 64KiB, in_flight: 8, timeout: 2s}"

func slotOf(n *NIC, workload uint32) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.workloads[workload].slot
}

func isFree(n *NIC, slot uint32) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.loaded[slot] == nil
}

// beginMessage sends the first of two packets of a message to the revision that serves.
func beginMessage(t *testing.T, n *NIC, revision uint32) []packets.Frame {
	t.Helper()
	list := fragments("assemble", methodStamp, randomBytes(100), 50)
	if h, _ := call(t, n, list[0]); h.Type != api.TypeAck || h.Revision != revision {
		t.Fatalf("begin: got %+v, want an acknowledgement by revision %d", h, revision)
	}
	return list
}

// A superseded revision stays for a message that it began, and not for one that the next began. A lambda without messages, superseded after it, shows
// when it could have gone.
func TestDrainWaitsForMessages(t *testing.T) {
	n := newTestNIC(t)
	w, other := workloads["assemble"], workloads["packet"]
	deploy(t, n, version(t, w, 1, heldSpec), version(t, other, 1, packetSpec))
	old, idle := slotOf(n, w), slotOf(n, other)
	list := beginMessage(t, n, 1)
	deploy(t, n, version(t, w, 2, heldSpec), version(t, other, 2, packetSpec))
	eventually(t, "the idle revision is freed", func() bool {
		call(t, n, list[0])
		return isFree(n, idle)
	})
	if isFree(n, old) {
		t.Fatal("the other was freed before its message was whole")
	}
	h, p := call(t, n, list[1])
	if p = pullAll(t, n, list[1], h, p); h.Revision != 1 || string(p) != string(stamped([]byte(list[0].RPC.Payload+list[1].RPC.Payload), 1, 1)) {
		t.Errorf("got %+v %x", h, p)
	}
	call(t, n, done(list[0]))
	list = beginMessage(t, n, 2)
	eventually(t, "the other is freed, too", func() bool {
		call(t, n, list[0])
		return isFree(n, old)
	})
}

// A client that keeps a message alive beyond the drain does not meet whoever has the slot then: not another lambda, and not a
// later revision of the same, which has not all of the message.
func TestMessageOutlivesItsRevision(t *testing.T) {
	w := workloads["assemble"]
	for name, next := range map[string]func(*testing.T) backend.Deployment{
		"nobody":          nil,
		"another lambda":  func(t *testing.T) backend.Deployment { return version(t, workloads["stream"], 1, streamSpec) },
		"a later version": func(t *testing.T) backend.Deployment { return version(t, w, 3, heldSpec) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testConfig(t)
			c.drainLimit = time.Millisecond
			n := open(t, c)
			deploy(t, n, version(t, w, 1, heldSpec))
			old := slotOf(n, w)
			list := beginMessage(t, n, 1)
			deploy(t, n, version(t, w, 2, heldSpec))
			eventually(t, "its revision is freed", func() bool {
				call(t, n, list[0])
				return isFree(n, old)
			})
			if next != nil {
				d := next(t)
				deploy(t, n, d)
				if got := slotOf(n, d.Workload); got != old {
					t.Fatalf("slot %d is next, not %d: the test has lost its edge", got, old)
				}
			}
			h, p := call(t, n, list[1])
			wantCode(t, "the rest of the message", h, api.CodeStale)
			if len(p) > 0 {
				t.Errorf("with it came %q", p)
			}
			h, _ = call(t, n, pull(list[0], api.Header{Revision: 1, Length: 50, Count: 2}, 1))
			wantCode(t, "pull", h, api.CodeStale)
			call(t, n, done(list[0]))
			call(t, n, list[0])
			if h, _ = call(t, n, list[1]); h.Type != api.TypeResponse || h.Revision < 2 {
				t.Errorf("the message begun anew: got %+v", h)
			}
		})
	}
}

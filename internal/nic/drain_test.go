package nic

import (
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/test/packets"
)

// heldSpec has messages that last as long as their client wants, if it sends anything every minute.
const heldSpec = "message: {mode: assemble, max: 64KiB, in_flight: 8, timeout: 1m}"

func slotOf(n *NIC, workload uint32) uint32 {
	return n.revision(workload).Slot
}

func isFree(n *NIC, slot uint32) bool {
	n.changing.Lock()
	defer n.changing.Unlock()
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

// A superseded revision stays for a message that it began, but not for one that the next began. A lambda without messages, superseded
// after it, shows when it could have gone.
func TestDrainWaitsForMessages(t *testing.T) {
	n := newTestNIC(t)
	w, other := workloads["assemble"], workloads["packet"]
	next := []backend.Deployment{version(t, w, 2, heldSpec), version(t, other, 2, packetSpec)}
	deploy(t, n, version(t, w, 1, heldSpec), version(t, other, 1, packetSpec))
	old, idle := slotOf(n, w), slotOf(n, other)
	list := beginMessage(t, n, 1)
	deploy(t, n, next...)
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

// A client that keeps a message alive beyond the drain does not reach the slot's next owner: neither another lambda, nor a later
// revision of the same lambda, which lacks some of the message.
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
			deploy(t, n, version(t, w, 1, briefSpec)) // drains soon
			old := slotOf(n, w)
			list := beginMessage(t, n, 1)
			editRecords(t, n, old, lastForEver) // as if its client sent something all the time
			deploy(t, n, version(t, w, 2, heldSpec))
			eventually(t, "its revision is freed", func() bool { return isFree(n, old) })
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
			call(t, n, list[0])
			if h, _ = call(t, n, list[1]); h.Type != api.TypeResponse || h.Revision < 2 {
				t.Errorf("the message begun anew: got %+v", h)
			}
		})
	}
}

// chainSpecs are specs of revisions that do not share records, so that the next revision has to search those of the one before.
var chainSpecs = [2]string{
	"message: {mode: assemble, max: 16KiB, in_flight: 8, timeout: 1m}", "message: {mode: assemble, max: 16KiB, in_flight: 32, timeout: 1m}",
}

// Freeing a revision does not cut off the one before it, which is still needed, from the one after it.
func TestFreedRevisionInBetween(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["assemble"]
	deploy(t, n, version(t, w, 1, chainSpecs[0]))
	whole := fragments("assemble", methodStamp, randomBytes(500), 100)
	for _, f := range whole[:4] {
		call(t, n, f)
	}
	first, reply := call(t, n, whole[4])
	half := beginMessage(t, n, 1)
	deploy(t, n, version(t, w, 2, chainSpecs[1]))
	second := slotOf(n, w)
	deploy(t, n, version(t, w, 3, chainSpecs[1]))
	eventually(t, "revision 2 is freed", func() bool { return isFree(n, second) })

	var message []byte
	for _, f := range whole {
		message = append(message, f.RPC.Payload...)
	}
	if reply = pullAll(t, n, whole[0], first, reply); string(reply) != string(stamped(message, 1, 1)) {
		t.Errorf("reply of revision 1: %x", reply)
	}
	if h, _ := call(t, n, half[1]); h.Type != api.TypeResponse || h.Revision != 1 {
		t.Errorf("message of revision 1: got %+v", h)
	}
}

// If there are more revisions than packets look through, the first are not found, nor found again after those in between have drained.
func TestChainOfRevisionsIsBounded(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["assemble"]
	const last = uint32(program.RootLnLimitLN_MAX_PREV) + 2
	var begun [last + 1][]packets.Frame
	var slots [last + 1]uint32
	for i := uint32(1); i <= last; i++ {
		deploy(t, n, version(t, w, i, chainSpecs[i%2]))
		begun[i], slots[i] = beginMessage(t, n, i), slotOf(n, w)
	}
	for i := uint32(2); i < last; i++ {
		if h, _ := call(t, n, begun[i][1]); h.Type != api.TypeResponse || h.Revision != i {
			t.Errorf("message of revision %d: got %+v", i, h)
		}
		call(t, n, done(begun[i][0]))
	}
	eventually(t, "those between drain", func() bool {
		for i := uint32(2); i < last; i++ {
			if !isFree(n, slots[i]) {
				return false
			}
		}
		return true
	})
	if h, _ := call(t, n, begun[1][1]); h.Type != api.TypeAck || h.Revision != last {
		t.Errorf("message of revision 1: got %+v, want it begun anew", h)
	}
}

// A superseded revision stays for a call that it made, however long its service takes.
func TestDrainWaitsForCalls(t *testing.T) {
	n := newTestNIC(t)
	fake := newFake(t, n.HostAddr())
	other := workloads["packet"]
	deploy(t, n, kvRevision(t, 1, fake.addr(), longest), version(t, other, 1, packetSpec))
	old, idle := slotOf(n, kvWorkload), slotOf(n, other)
	c := dialNIC(t, n.Addr())
	id := c.send(methodGet, []byte("key"), 64)
	question := fake.receive()
	deploy(t, n, kvRevision(t, 2, fake.addr(), longest), version(t, other, 2, packetSpec))
	eventually(t, "the idle revision is freed", func() bool { return isFree(n, idle) })
	if isFree(n, old) {
		t.Error("the other was freed before its call was answered")
	}
	fake.answer(question, 0, 1, value("key", "x"))
	if h, body := c.receive(); h.Request != id || h.Revision != 1 || string(body) != "key=x" {
		t.Errorf("got %+v %q", h, body)
	}
	eventually(t, "the other is freed, too", func() bool { return isFree(n, old) })
}

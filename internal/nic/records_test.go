package nic

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module/messages"
	"github.com/lambdanic/lambdanic/test/packets"
)

// editRecords changes a revision's message records, free ones included, under their locks, as the NIC program on another CPU does.
func editRecords(t testing.TB, n *NIC, slot uint32, edit func(*messages.Message)) {
	t.Helper()
	n.changing.Lock()
	rec := n.loaded[slot].Record
	n.changing.Unlock()
	buckets := pinnedMap(t, n, "ln_messages")
	for i := range rec.BucketCount {
		var b messages.Bucket
		if err := buckets.LookupWithFlags(rec.BucketBase+i, &b, ebpf.LookupLock); err != nil {
			t.Fatal(err)
		}
		for w := range b.Way {
			edit(&b.Way[w])
		}
		if err := buckets.Update(rec.BucketBase+i, &b, ebpf.UpdateLock); err != nil {
			t.Fatal(err)
		}
	}
}

// passTime ages the messages of a revision.
func passTime(t testing.TB, n *NIC, slot uint32, by time.Duration) {
	t.Helper()
	editRecords(t, n, slot, func(m *messages.Message) { m.ExpiresNs -= min(m.ExpiresNs, uint64(by)) })
}

// lastForEver keeps the present messages from expiring by themselves.
func lastForEver(m *messages.Message) { m.ExpiresNs = math.MaxUint64 }

// wantReleased checks that no record says that a CPU works on it.
func wantReleased(t testing.TB, n *NIC, workload uint32) {
	t.Helper()
	editRecords(t, n, slotOf(n, workload), func(m *messages.Message) {
		if m.Users != 0 {
			t.Errorf("%d CPUs have not left the record of message %#x, in state %d", m.Users, m.Request, m.State)
		}
	})
}

// tinySpec has room for one message.
const tinySpec = "message: {mode: assemble, max: 2KiB, in_flight: 1, timeout: 1m}"

// A record that a CPU still works on goes to no other message, whatever happened to its own.
func TestHeldRecordIsNobodyElses(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["assemble"]
	deploy(t, n, probe(t, w, 1, tinySpec))
	set := func(change func(*messages.Message)) { editRecords(t, n, slotOf(n, w), change) }
	begin := func() []packets.Frame { return fragments("assemble", methodEcho, randomBytes(100), 50) }
	for name, meanwhile := range map[string]func(list []packets.Frame){
		"answered":  func(list []packets.Frame) { call(t, n, list[1]) },
		"expired":   func([]packets.Frame) { set(func(m *messages.Message) { m.ExpiresNs = 1 }) },
		"forgotten": func([]packets.Frame) { set(func(m *messages.Message) { m.State = 0 }) },
	} {
		t.Run(name, func(t *testing.T) {
			list := begin()
			call(t, n, list[0])
			set(func(m *messages.Message) { m.Users++ })
			meanwhile(list)
			for range 2 {
				h, _ := call(t, n, begin()[0])
				wantCode(t, "another message", h, api.CodeBusy)
			}
			if h, _ := call(t, n, list[0]); name == "expired" && h.Type != api.TypeAck {
				t.Errorf("the message itself: got %+v", h)
			}
			set(func(m *messages.Message) { m.Users-- })
			call(t, n, done(list[0]))
			list = begin()
			call(t, n, list[0])
			if h, p := call(t, n, list[1]); h.Type != api.TypeResponse || string(p) != list[0].RPC.Payload {
				t.Errorf("another message, when the record is free: got %+v %q", h, p)
			}
			call(t, n, done(list[0]))
		})
	}
	wantReleased(t, n, w)
}

// A client that is done with a message frees its record, unless a CPU still works on it.
func TestDoneWithAHeldRecord(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["assemble"]
	deploy(t, n, probe(t, w, 1, tinySpec))
	list := fragments("assemble", methodEcho, randomBytes(100), 50)
	call(t, n, list[0])
	first, _ := call(t, n, list[1])
	editRecords(t, n, slotOf(n, w), func(m *messages.Message) { m.Users++ })
	call(t, n, done(list[0]))
	if h, p := call(t, n, pull(list[0], first, 1)); h.Type != api.TypeResponse || string(p) != list[1].RPC.Payload {
		t.Errorf("held: got %+v %q", h, p)
	}
	editRecords(t, n, slotOf(n, w), func(m *messages.Message) { m.Users-- })
	call(t, n, done(list[0]))
	h, _ := call(t, n, pull(list[0], first, 1))
	wantCode(t, "released", h, api.CodeStale)
}

// However a message ends, all CPUs leave its record: the only record serves the next message.
func TestRecordsAreReleased(t *testing.T) {
	n := newTestNIC(t)
	w := workloads["assemble"]
	deploy(t, n, probe(t, w, 1, tinySpec))
	for _, method := range []uint32{methodEcho, methodFault, methodDrop, methodTake, methodEcho} {
		list := fragments("assemble", method, randomBytes(100), 50)
		for i, f := range []packets.Frame{list[0], list[0], list[1]} {
			if h, _ := call(t, n, f); i < 2 && h.Type != api.TypeAck {
				t.Errorf("method %d, packet %d: got %+v", method, i, h)
			}
		}
		wantReleased(t, n, w)
	}
}

// A message's time-out is that of the revision that began it, whichever revision serves by then and takes its packets.
func TestMessageTimeoutIsItsRevisions(t *testing.T) {
	const spec = "message: {mode: assemble, max: 64KiB, in_flight: 8, timeout: %s}"
	w := workloads["assemble"]
	// The client's deadline of a minute ends its message too: the brief time-out is far from it, so that a slow machine meets only one of them.
	brief, long := fmt.Sprintf(spec, "30s"), fmt.Sprintf(spec, "10m")
	expire := func(n *NIC) { passTime(t, n, slotOf(n, w), 30*time.Second) } // expires messages with a brief time-out
	brief2, long2 := version(t, w, 2, brief), version(t, w, 2, long)

	t.Run("long, then brief", func(t *testing.T) {
		n := newTestNIC(t)
		deploy(t, n, version(t, w, 1, long))
		list := beginMessage(t, n, 1)
		deploy(t, n, brief2)
		beginMessage(t, n, 2)
		call(t, n, list[0])
		expire(n)
		if h, _ := call(t, n, list[1]); h.Type != api.TypeResponse || h.Revision != 1 {
			t.Errorf("its other half: got %+v", h)
		}
	})
	t.Run("brief, then long", func(t *testing.T) {
		n := newTestNIC(t)
		deploy(t, n, version(t, w, 1, brief))
		list := beginMessage(t, n, 1)
		deploy(t, n, long2)
		call(t, n, list[0])
		expire(n)
		if h, _ := call(t, n, list[0]); h.Type != api.TypeAck || h.Revision != 2 {
			t.Errorf("begun anew: got %+v", h)
		}
	})
}

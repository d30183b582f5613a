package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/test/packets"
)

// Twenty swaps, each while messages are in assembly: these end with the revision that began them, new ones begin with the new
// revision, and kept objects count on.
func TestSwapsDuringMessages(t *testing.T) {
	for _, mode := range []struct{ workload, spec string }{{"assemble", assembleSpec}, {"stream", streamSpec}} {
		t.Run(mode.workload, func(t *testing.T) {
			n := newTestNIC(t)
			revision := func(i uint32) {
				d := probe(t, workloads[mode.workload], 1+i%2, mode.spec)
				d.Revision = i
				deploy(t, n, d)
			}
			revision(1)
			runs := uint32(0)
			for swap := uint32(2); swap <= 21; swap++ {
				message := randomBytes(500)
				list := fragments(mode.workload, methodTake, message, 100)
				if mode.workload == "assemble" {
					list = fragments(mode.workload, methodStamp, message, 100)
				}
				for _, f := range list[:3] {
					if h, _ := call(t, n, f); h.Type != api.TypeAck || h.Revision != swap-1 {
						t.Fatalf("swap %d: begin: %+v", swap, h)
					}
				}
				revision(swap)
				runs++
				single := fragments(mode.workload, methodCount, randomBytes(40), 40)[0]
				h, p := call(t, n, single)
				wantStamp(t, h, p, swap, runs)
				call(t, n, done(single))
				call(t, n, list[3])
				runs++
				h, p = call(t, n, list[4])
				wantStamp(t, h, p, swap-1, runs)
				if mode.workload == "assemble" {
					if p = pullAll(t, n, list[0], h, p); !bytes.Equal(p, stamped(message, 1+(swap-1)%2, runs)) {
						t.Fatalf("swap %d: wrong reply", swap)
					}
					other := pull(list[0], h, 1)
					other.RPC.Revision = swap
					stale, _ := call(t, n, other)
					wantCode(t, "pull of another revision than answered", stale, api.CodeStale)
				}
				call(t, n, done(list[0]))
			}
		})
	}
}

// wantStamp checks that header and content of a reply are of one and the same revision.
func wantStamp(t testing.TB, h api.Header, p []byte, revision, count uint32) {
	t.Helper()
	if h.Type != api.TypeResponse || len(p) < 8 || h.Revision != revision ||
		binary.LittleEndian.Uint32(p) != 1+revision%2 || binary.LittleEndian.Uint32(p[4:]) != count {
		t.Fatalf("got %+v %x, want revision %d, run %d", h, p, revision, count)
	}
}

// Both CPUs assemble message after message while twenty revisions come and go. No message is lost or mixes two revisions, and
// the kept counter has counted each once.
func TestSwapsUnderLoad(t *testing.T) {
	n := newTestNIC(t)
	workload := workloads["assemble"]
	versions := []func(uint32) error{}
	for i := range uint32(2) {
		d := probe(t, workload, 1+i, assembleSpec)
		versions = append(versions, func(revision uint32) error {
			d.Revision = revision
			return n.Deploy(t.Context(), d)
		})
	}
	if err := versions[1](1); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var sent atomic.Uint32
	var seen [32]atomic.Uint32
	var latest sync.Map // revision that answered, by CPU
	var load sync.WaitGroup
	load.Go(func() {
		twoCPUs(t, func(cpu int) {
			latest.Store(cpu, uint32(1))
			for !stop.Load() && !t.Failed() {
				sent.Add(1)
				if revision := exchange(t, n); revision < uint32(len(seen)) {
					seen[revision].Add(1)
					latest.Store(cpu, revision)
				}
			}
		})
	})
	for swap := uint32(2); swap <= 21; swap++ {
		eventually(t, "the revision has answered, and no message is older than replies are kept", func() bool {
			ready := seen[swap-1].Load() > 3
			latest.Range(func(_, revision any) bool {
				ready = ready && revision.(uint32)+uint32(program.RootLnLimitLN_MAX_PREV) >= swap
				return true
			})
			return ready || t.Failed()
		})
		if err := versions[swap%2](swap); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	load.Wait()
	total := uint32(0)
	for i := range seen {
		total += seen[i].Load()
	}
	single := fragments("assemble", methodCount, randomBytes(8), 8)[0]
	h, p := call(t, n, single)
	if count := binary.LittleEndian.Uint32(p[4:]); total != sent.Load() || count != total+1 {
		t.Errorf("%d messages sent, %d answered, %d counted; %+v", sent.Load(), total, count-1, h)
	}
}

// exchange sends one message, checks its answer, and returns the answer's revision.
func exchange(t testing.TB, n *NIC) uint32 {
	message := randomBytes(600)
	list := fragments("assemble", methodStamp, message, 100)
	var h api.Header
	var p []byte
	for i := range list {
		frame := build(t, &list[i])
		_, out := inject(t, n, frame)
		var err error
		if h, p, err = packets.Answer(frame, out); err != nil {
			t.Error(err)
			return 0
		}
	}
	last := list[0]
	for i := uint32(1); i < h.Count; i++ {
		f := pull(last, h, i)
		frame := build(t, &f)
		_, out := inject(t, n, frame)
		_, part, err := packets.Answer(frame, out)
		if err != nil {
			t.Error(err)
			return 0
		}
		p = append(p, part...)
	}
	finish := done(last)
	inject(t, n, build(t, &finish))
	if h.Type != api.TypeResponse || len(p) != len(message) ||
		!bytes.Equal(p, stamped(message, 1+h.Revision%2, binary.LittleEndian.Uint32(p[4:]))) {
		t.Errorf("revision %d answered with %+v %x", h.Revision, h, p[:min(len(p), 16)])
		return 0
	}
	return h.Revision
}

// A revision with another number of message records still ends the messages of the one before, and still refuses what does not fit.
func TestSwapToOtherRecords(t *testing.T) {
	n := newTestNIC(t)
	const spec = "message: {mode: assemble, max: 16KiB, in_flight: %d, timeout: 1m}"
	deploy(t, n, probe(t, workloads["assemble"], 1, fmt.Sprintf(spec, 8)))
	list := fragments("assemble", methodStamp, randomBytes(100), 50)
	call(t, n, list[0])
	deploy(t, n, probe(t, workloads["assemble"], 2, fmt.Sprintf(spec, 32)))
	other := fragments("assemble", methodStamp, randomBytes(150), 50)[2]
	other.RPC.Request = list[0].RPC.Request
	h, _ := call(t, n, other)
	wantCode(t, "packet that does not fit", h, api.CodeMalformed)
	if h, p := call(t, n, list[1]); h.Type != api.TypeResponse || h.Revision != 1 || binary.LittleEndian.Uint32(p) != 1 {
		t.Errorf("message of the revision before: got %+v %x", h, p)
	}
	h, _ = call(t, n, fragments("assemble", methodStamp, randomBytes(100), 50)[0])
	if h.Revision != 2 {
		t.Errorf("new message: got %+v", h)
	}
}

// The maximum of messages is in assembly when a revision comes whose messages differ in mode or limits, or that takes none. Each message
// ends with the revision that began it, in that revision's records; new messages belong to the new revision.
func TestSwapToAnotherKindOfMessages(t *testing.T) {
	const memory = "\nlimits: {memory: 8MiB}"
	for _, swap := range []struct{ before, after string }{
		{"mode: assemble, max: 64KiB, in_flight: 4", "mode: assemble, max: 64KiB, in_flight: 2"},
		{"mode: assemble, max: 64KiB, in_flight: 2", "mode: assemble, max: 64KiB, in_flight: 4"},
		{"mode: assemble, max: 64KiB, in_flight: 4", "mode: assemble, max: 64KiB, in_flight: 64"},
		{"mode: assemble, max: 64KiB, in_flight: 64", "mode: assemble, max: 64KiB, in_flight: 1"},
		{"mode: assemble, max: 64KiB, in_flight: 4", "mode: assemble, max: 2KiB, in_flight: 4"},
		{"mode: assemble, max: 4KiB, in_flight: 4", "mode: assemble, max: 64KiB, in_flight: 4"},
		{"mode: assemble, max: 64KiB, in_flight: 4", "mode: stream, max: 64KiB, in_flight: 4"},
		{"mode: assemble, max: 64KiB, in_flight: 4", "mode: stream, max: 2KiB, in_flight: 64"},
		{"mode: stream, max: 64KiB, in_flight: 4", "mode: assemble, max: 64KiB, in_flight: 4"},
		{"mode: stream, max: 64KiB, in_flight: 4", "mode: stream, max: 2KiB, in_flight: 1"},
		{"mode: assemble, max: 64KiB, in_flight: 4", "mode: packet"},
		{"mode: stream, max: 64KiB, in_flight: 4", "mode: packet"},
	} {
		t.Run(swap.before+" to "+swap.after, func(t *testing.T) {
			t.Parallel()
			n := newTestNIC(t)
			deploy(t, n, version(t, workloads["assemble"], 1, "message: {"+swap.before+", timeout: 1m}"+memory))
			var begun [][]packets.Frame
			for range 4 {
				list := fragments("assemble", methodStamp, randomBytes(4000), 1000)
				if strings.HasPrefix(swap.before, "mode: stream") {
					list = fragments("assemble", methodTake, randomBytes(4000), 1000)
				}
				if h, _ := call(t, n, list[3]); h.Type == api.TypeAck {
					call(t, n, list[1])
					begun = append(begun, list)
				}
			}
			if len(begun) < 2 {
				t.Fatalf("%d messages begun: the test has lost its edge", len(begun))
			}
			deploy(t, n, version(t, workloads["assemble"], 2, "message: {"+swap.after+"}"+memory))
			for _, list := range begun[1:] {
				call(t, n, list[0])
			}
			for i, list := range begun[1:] {
				wantWhole(t, n, list, uint32(i)+1)
			}
			wantNew(t, n, swap.after)
			call(t, n, begun[0][0])
			h, _ := call(t, n, begun[0][2])
			if h.Revision != 1 || h.Type != api.TypeResponse {
				t.Errorf("the first to begin, and the last to end: got %+v", h)
			}
		})
	}
}

// wantWhole sends the packet that a message of revision 1 lacks, and checks answer, repeated answer, and that it can be freed.
func wantWhole(t *testing.T, n *NIC, list []packets.Frame, count uint32) {
	t.Helper()
	first, p := call(t, n, list[2])
	again, _ := call(t, n, list[2])
	if again.Flags = first.Flags; again != first {
		t.Errorf("answered with %+v, again with %+v", first, again)
	}
	var message []byte
	for _, f := range list {
		message = append(message, f.RPC.Payload...)
	}
	want := stamped(message, 1, count)
	if list[0].RPC.Method == methodTake {
		want = want[:8]
	}
	if p = pullAll(t, n, list[2], first, p); first.Revision != 1 || !bytes.Equal(p, want) {
		t.Errorf("got %+v and %x, want revision 1 and %x", first, p[:min(len(p), 16)], want[:8])
	}
	call(t, n, done(list[0]))
}

// wantNew checks that new messages are revision 2's, as its spec says.
func wantNew(t *testing.T, n *NIC, spec string) {
	t.Helper()
	single := fragments("assemble", methodCount, randomBytes(100), 100)[0]
	if h, _ := call(t, n, single); h.Type != api.TypeResponse || h.Revision != 2 {
		t.Errorf("message of one packet: got %+v", h)
	}
	call(t, n, done(single))
	large := fragments("assemble", methodEcho, randomBytes(3000), 1000)[0]
	h, _ := call(t, n, large)
	switch {
	case strings.Contains(spec, "max: 64KiB"):
		if h.Revision != 2 || h.Type != api.TypeAck && h.Type != api.TypeResponse {
			t.Errorf("new message: got %+v", h)
		}
	default:
		wantCode(t, "message of more than the new revision takes", h, api.CodeTooLarge)
	}
	call(t, n, done(large))
}

// A revision whose kept objects differ is refused, and the one that runs does not notice.
func TestKeptLayoutDiffers(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, probe(t, workloads["packet"], 1, packetSpec))
	count := func() (uint32, uint32) {
		h, p := call(t, n, fragments("packet", methodCount, make([]byte, 8), 8)[0])
		return h.Revision, binary.LittleEndian.Uint32(p[4:])
	}
	count()
	wantError(t, n.Deploy(t.Context(), probe(t, workloads["packet"], 2, packetSpec, "PROBE_WIDE")), "kept objects differ")
	if revision, c := count(); revision != 1 || c != 2 {
		t.Errorf("afterwards revision %d counts %d, want 1 and 2", revision, c)
	}
	if used := usage(n); used.slots != 1 {
		t.Errorf("%d slots are in use", used.slots)
	}
}

// When a pull asks for a superseded revision, another lambda may have its slot.
func TestPullNeverReachesAnotherLambda(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, bundled(t, "web_server", workloads["web"], 1), probe(t, workloads["packet"], 7, packetSpec))
	web := n.revision(workloads["web"])
	web.Record.Prev = n.revision(workloads["packet"]).Slot
	if err := n.prog.LnSlots.Put(web.Slot, &web.Record); err != nil {
		t.Fatal(err)
	}
	first := api.Header{Revision: 7, Length: 10, Count: 2}
	h, p := call(t, n, pull(packets.Frame{RPC: packets.RPC{Workload: "web"}}, first, 1))
	wantCode(t, fmt.Sprintf("pull, answered with %q", p), h, api.CodeStale)
}

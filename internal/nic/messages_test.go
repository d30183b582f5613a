package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// Methods of test/lambdas/probe.
const (
	methodEcho  = 0
	methodStamp = 1
	methodCount = 5
	methodTake  = 8
)

var requests atomic.Uint64

// fragments are the packets of a message with a request ID of its own, size bytes each. Each has room for a packet of the reply.
func fragments(workload string, method uint32, message []byte, size int) []packets.Frame {
	count, length, id := uint32(api.Fragments(len(message), size)), uint32(len(message)), requests.Add(1)
	var list []packets.Frame
	for i := range count {
		part := message[int(i)*size : min(len(message), (int(i)+1)*size)]
		list = append(list, packets.Frame{RPC: packets.RPC{
			Workload: workload, Method: method, Flags: api.FlagAckWanted, Request: id, Index: i, Count: &count, MessageLen: &length,
			Payload: string(part), Room: size,
		}})
	}
	return list
}

// call injects a packet and gives the reply, whose form it has checked. Type 0 stands for none.
func call(t testing.TB, n *NIC, f packets.Frame) (api.Header, []byte) {
	t.Helper()
	frame := build(t, &f)
	verdict, out := inject(t, n, frame)
	if verdict == "drop" {
		return api.Header{}, nil
	}
	if verdict != "reply" {
		t.Fatalf("verdict %s", verdict)
	}
	h, payload, err := packets.Answer(frame, out)
	if err != nil {
		t.Fatal(err)
	}
	return h, payload
}

func wantCode(t testing.TB, what string, h api.Header, code api.Code) {
	t.Helper()
	if h.Type != api.TypeError || h.Code != uint8(code) {
		t.Errorf("%s: got type %d code %d, want error %d", what, h.Type, h.Code, code)
	}
}

// pull makes the request for packet i of the reply that first began.
func pull(f packets.Frame, first api.Header, i uint32) packets.Frame {
	typ, size := api.TypePull, uint32(first.Length)
	f.RPC.Type, f.RPC.Flags, f.RPC.Payload, f.RPC.Room = &typ, 0, "", int(size)
	f.RPC.Index, f.RPC.Count, f.RPC.MessageLen, f.RPC.Revision = i, &first.Count, &size, first.Revision
	return f
}

func done(f packets.Frame) packets.Frame {
	typ, one, zero := api.TypeAck, uint32(1), uint32(0)
	f.RPC.Type, f.RPC.Flags, f.RPC.Payload, f.RPC.Index, f.RPC.Count, f.RPC.MessageLen = &typ, api.FlagDone, "", 0, &one, &zero
	return f
}

// pullAll gives the whole reply.
func pullAll(t testing.TB, n *NIC, f packets.Frame, first api.Header, reply []byte) []byte {
	t.Helper()
	for i := uint32(1); i < first.Count; i++ {
		h, p := call(t, n, pull(f, first, i))
		if h.Type != api.TypeResponse || h.Index != i || h.Count != first.Count || h.MessageLen != first.MessageLen || h.Revision != first.Revision {
			t.Fatalf("pull of packet %d: got %+v", i, h)
		}
		reply = append(reply, p...)
	}
	return reply
}

// stamped is what probe makes of a message.
func stamped(message []byte, revision, count uint32) []byte {
	b := bytes.Clone(message)
	binary.LittleEndian.PutUint32(b, revision)
	binary.LittleEndian.PutUint32(b[4:], count)
	binary.LittleEndian.PutUint32(b[len(b)-4:], revision)
	return b
}

// Messages of any length in packets of any size, which come in any order and more than once: each is acknowledged with what
// has arrived, the lambda runs once, its reply can be pulled until the client says it is done, and then is gone.
func TestAssembleAnyOrder(t *testing.T) {
	n := everyMode(t)
	r := seed.Rand(t)
	for run := uint32(1); run <= 60; run++ {
		size := 12 + r.IntN(api.RPCFragment-11)
		message := randomBytes(max(12, r.IntN(min(64<<10, 300*size))))
		list := fragments("assemble", methodStamp, message, size)
		order := r.Perm(len(list))
		arrived := make([]uint64, len(list)/64+1)
		for _, i := range order[:len(order)-1] {
			arrived[i/64] |= 1 << (i % 64)
			for range 1 + r.IntN(2) {
				h, p := call(t, n, list[i])
				if h.Type != api.TypeAck || h.Index != uint32(i) || packets.Bitmap(p) != arrived[i/64] {
					t.Fatalf("packet %d of %d: got %+v %x, want acknowledgement of %x", i, len(list), h, p, arrived[i/64])
				}
			}
		}
		last := list[order[len(order)-1]]
		first, reply := call(t, n, last)
		if first.Type != api.TypeResponse || first.Index != 0 || int(first.MessageLen) != len(message) {
			t.Fatalf("message of %d in packets of %d: got %+v", len(message), size, first)
		}
		call(t, n, fragments("stream", methodEcho, message, size)[0]) // another message's packet, on the same CPU
		again, p := call(t, n, last)
		if again.Flags = first.Flags; again != first || !bytes.Equal(p, reply) {
			t.Fatalf("the last packet again: got %+v, before it was %+v", again, first)
		}
		if reply = pullAll(t, n, last, first, reply); !bytes.Equal(reply, stamped(message, 1, run)) {
			t.Fatalf("message %d: wrong reply of %d bytes to %d in packets of %d", run, len(reply), len(message), size)
		}
		call(t, n, done(last))
		h, _ := call(t, n, pull(last, first, 0))
		wantCode(t, "pull after done", h, api.CodeStale)
	}
}

// A stream that answers each packet answers each copy of it; one that takes packets in answers with the packet that makes the
// message whole, and again if any comes again.
func TestStreamAnyOrder(t *testing.T) {
	n := everyMode(t)
	r := seed.Rand(t)
	for run := uint32(1); run <= 30; run++ {
		message := randomBytes(1 + r.IntN(30000))
		list := fragments("stream", methodEcho, message, api.RPCFragment)
		got := make([]byte, len(message))
		for _, i := range append(r.Perm(len(list)), r.IntN(len(list))) {
			h, p := call(t, n, list[i])
			if h.Type != api.TypeResponse || h.Index != uint32(i) || int(h.Count) != len(list) || int(h.MessageLen) != len(message) {
				t.Fatalf("packet %d of %d: got %+v", i, len(list), h)
			}
			copy(got[i*api.RPCFragment:], p)
		}
		if !bytes.Equal(got, message) {
			t.Fatal("wrong reply")
		}
		call(t, n, done(list[0]))

		list = fragments("stream", methodTake, randomBytes(8*(2+r.IntN(200))), 8)
		order := r.Perm(len(list))
		for _, i := range order[:len(order)-1] {
			if h, p := call(t, n, list[i]); h.Type != api.TypeAck || packets.Bitmap(p)>>(i%64)&1 == 0 {
				t.Fatalf("packet %d taken: got %+v %x", i, h, p)
			}
		}
		for range 2 {
			h, p := call(t, n, list[order[len(order)-1]])
			if h.Type != api.TypeResponse || binary.LittleEndian.Uint32(p[4:]) != run {
				t.Fatalf("whole message %d: got %+v %x", run, h, p)
			}
		}
		call(t, n, done(list[0]))
	}
}

// onCPU runs f on a thread that stays on one CPU, where BPF_PROG_TEST_RUN then runs the NIC program.
func onCPU(t testing.TB, cpu int, f func()) {
	runtime.LockOSThread() // and never unlocked: the thread ends with its goroutine
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Errorf("pin to CPU %d: %v", cpu, err)
		return
	}
	f()
}

// twoCPUs runs f on two CPUs at once.
func twoCPUs(t testing.TB, f func(cpu int)) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for cpu, begun := 0, 0; begun < min(2, set.Count()); cpu++ {
		if set.IsSet(cpu) {
			begun++
			group.Go(func() { onCPU(t, cpu, func() { f(cpu) }) })
		}
	}
	group.Wait()
}

// All packets of each message come in on two CPUs at once, in different orders: exactly one of them makes the message whole.
func TestTwoCPUsOneRun(t *testing.T) {
	for _, mode := range []struct {
		workload string
		method   uint32
	}{{"assemble", methodStamp}, {"stream", methodTake}} {
		t.Run(mode.workload, func(t *testing.T) {
			n := everyMode(t)
			r := seed.Rand(t)
			const messages, size = 400, 64
			for run := uint32(1); run <= messages; run++ {
				message := randomBytes(1000)
				list := fragments(mode.workload, mode.method, message, size)
				frames := make([][]byte, len(list))
				for i := range list {
					frames[i] = build(t, &list[i])
				}
				var answers atomic.Int32
				orders := r.Uint64()
				twoCPUs(t, func(cpu int) {
					for _, i := range rand.New(rand.NewPCG(orders, uint64(cpu))).Perm(len(frames)) {
						if verdict, out := inject(t, n, frames[i]); verdict == "reply" {
							h, p, err := packets.Answer(frames[i], out)
							if err != nil {
								t.Error(err)
							}
							if h.Type == api.TypeResponse {
								answers.Add(1)
								if c := binary.LittleEndian.Uint32(p[4:]); c != run {
									t.Errorf("message %d: the lambda has run %d times", run, c)
								}
							}
						}
					}
				})
				if answers.Load() == 0 {
					t.Fatalf("message %d has no answer", run)
				}
				if mode.workload == "assemble" {
					first, reply := call(t, n, list[0])
					if !bytes.Equal(pullAll(t, n, list[0], first, reply), stamped(message, 1, run)) {
						t.Fatalf("message %d: wrong reply", run)
					}
				}
				call(t, n, done(list[0]))
				if t.Failed() {
					return
				}
			}
		})
	}
}

// No more messages than in_flight are begun; those in progress are finished all the same, and make room when they are
// forgotten.
func TestMessageRecordsAreBounded(t *testing.T) {
	n := newTestNIC(t)
	for i, inFlight := range []int{1, 2, 3, 4, 8, 64} {
		name := fmt.Sprint("in flight ", inFlight)
		workloads := map[string]uint32{"": uint32(i + 1)}
		deploy(t, n, probe(t, uint32(i+1), 1, fmt.Sprintf("message: {mode: assemble, max: 2KiB, in_flight: %d, timeout: 200ms}", inFlight)))
		send := func(f packets.Frame) (api.Header, []byte) {
			frame, err := f.Build(workloads)
			if err != nil {
				t.Fatal(err)
			}
			_, out := inject(t, n, frame)
			h, p, err := packets.Answer(frame, out)
			if err != nil {
				t.Fatal(err)
			}
			return h, p
		}
		var begun [][]packets.Frame
		busy := false
		for range 8 * inFlight {
			list := fragments("", methodEcho, randomBytes(100), 50)
			h, _ := send(list[0])
			if h.Type == api.TypeAck {
				begun = append(begun, list)
				continue
			}
			wantCode(t, name, h, api.CodeBusy)
			busy = true
		}
		if !busy || len(begun) > inFlight || inFlight <= 4 && len(begun) < inFlight {
			t.Fatalf("%s: %d messages begun", name, len(begun))
		}
		for _, list := range begun {
			if h, p := send(list[1]); h.Type != api.TypeResponse || string(p) != list[0].RPC.Payload {
				// A slow machine may have let it expire.
				if h.Type != api.TypeAck && h.Code != uint8(api.CodeBusy) {
					t.Errorf("%s: finished message: got %+v %q", name, h, p)
				}
			}
		}
		eventually(t, name+": a new message is begun when the old ones have expired", func() bool {
			h, _ := send(fragments("", methodEcho, randomBytes(100), 50)[0])
			return h.Type == api.TypeAck
		})
	}
}

// Packets that contradict what their message's other packets said are malformed, whichever came first, and do it no harm.
func TestContradictingPackets(t *testing.T) {
	n := everyMode(t)
	// These two would leave byte 5 as an earlier message left it.
	short := fragments("assemble", methodEcho, []byte("0123456789"), 5)[0]
	list := fragments("assemble", methodEcho, []byte("0123456789"), 6)
	short.RPC.Request = list[0].RPC.Request
	if h, _ := call(t, n, list[1]); h.Type != api.TypeAck {
		t.Fatalf("last packet: got %+v", h)
	}
	h, _ := call(t, n, short)
	wantCode(t, "packet of another size", h, api.CodeMalformed)
	for _, other := range [][2]int{{11, 6}, {12, 6}, {10, 4}} {
		f := fragments("assemble", methodEcho, randomBytes(other[0]), other[1])[0]
		f.RPC.Request = list[0].RPC.Request
		h, _ := call(t, n, f)
		wantCode(t, fmt.Sprint("packet of another message ", other), h, api.CodeMalformed)
	}
	if h, p := call(t, n, list[0]); h.Type != api.TypeResponse || string(p) != "012345" || h.MessageLen != 10 {
		t.Errorf("the message itself: got %+v %q", h, p)
	}
}

// Clients choose their request IDs on their own: the same from another port or over another protocol is another message.
func TestMessagesOfManyClients(t *testing.T) {
	n := everyMode(t)
	a := fragments("assemble", methodEcho, []byte("aaaaaaaabb"), 8)
	var clients [][]packets.Frame
	for i := range 4 {
		list := slices.Clone(a)
		for j := range list {
			list[j].IPv6 = i&1 == 1
			list[j].Patch = map[string]string{"udp+0": fmt.Sprintf("%04x", 2000+i/2)}
			list[j].Checksum = "none"
		}
		clients = append(clients, list)
	}
	for i, list := range clients {
		if h, p := call(t, n, list[0]); h.Type != api.TypeAck || packets.Bitmap(p) != 1 {
			t.Errorf("client %d: got %+v %x", i, h, p)
		}
	}
}

// Twenty swaps, each while messages are in assembly: they end with the revision that began them, new ones begin with the new
// one, and what is kept counts on.
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

// Both CPUs assemble message after message while twenty revisions come and go. None is lost, none is of two revisions, and
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
	var load sync.WaitGroup
	load.Go(func() {
		twoCPUs(t, func(int) {
			for !stop.Load() && !t.Failed() {
				sent.Add(1)
				if revision := exchange(t, n); revision < uint32(len(seen)) {
					seen[revision].Add(1)
				}
			}
		})
	})
	for swap := uint32(2); swap <= 21; swap++ {
		eventually(t, "both revisions answered", func() bool { return seen[swap-1].Load() > 3 || t.Failed() })
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

// exchange sends one message and checks its answer, of which it gives the revision.
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

// A revision with another number of message records still ends what the one before it began, and still refuses what does not fit.
func TestSwapToOtherRecords(t *testing.T) {
	n := newTestNIC(t)
	const spec = "message: {mode: assemble, max: 16KiB, in_flight: %d}"
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

// A superseded revision's slot may be another lambda's by the time that a pull asks for it.
func TestPullNeverReachesAnotherLambda(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, bundled(t, "web_server", workloads["web"], 1), probe(t, workloads["packet"], 7, packetSpec))
	web := n.workloads[workloads["web"]]
	web.rec.Prev = n.workloads[workloads["packet"]].slot
	if err := n.objs.LnSlots.Put(web.slot, &web.rec); err != nil {
		t.Fatal(err)
	}
	first := api.Header{Revision: 7, Length: 10, Count: 2}
	h, p := call(t, n, pull(packets.Frame{RPC: packets.RPC{Workload: "web"}}, first, 1))
	wantCode(t, fmt.Sprintf("pull, answered with %q", p), h, api.CodeStale)
}

// used counts what the loader has handed out.
type used struct{ slots, buckets, services int }

func usage(n *NIC) used {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := func(r ranges) (c int) {
		for _, u := range r.used {
			c += bits.OnesCount8(flag(u))
		}
		return c
	}
	return used{count(n.slots), count(n.buckets), count(n.services)}
}

package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
	"github.com/lambdanic/lambdanic/test/seed"
)

// Methods of test/lambdas/probe.
const (
	methodEcho  = 0
	methodStamp = 1
	methodFault = 3
	methodDrop  = 4
	methodCount = 5
	methodTake  = 8
	// uses an address outside of its memory
	methodOutside = 10
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
	return replied(t, frame, verdict, out)
}

// send is call for a packet that the link brings.
func send(t testing.TB, n *NIC, f packets.Frame) (api.Header, []byte) {
	t.Helper()
	frame := build(t, &f)
	verdict, out := arrive(t, n, frame)
	return replied(t, frame, verdict, out)
}

func replied(t testing.TB, frame []byte, verdict string, out []byte) (api.Header, []byte) {
	t.Helper()
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

// stamped is probe's reply to a message.
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

// Each packet of a message that is not begun is refused, and the message counts once.
func TestRefusedMessageCountsOnce(t *testing.T) {
	n := everyMode(t)
	errorsOf := func(workload string) uint64 {
		t.Helper()
		list, err := n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Workload == workloads[workload] {
				return s.Stats.Errors
			}
		}
		t.Fatalf("%s is not there", workload)
		return 0
	}
	refused := func(what, workload string, size int, flags api.Flag, code api.Code) {
		t.Helper()
		before := errorsOf(workload)
		for _, f := range fragments(workload, methodTake, make([]byte, size), 1000) {
			f.RPC.Flags |= flags
			h, _ := call(t, n, f)
			wantCode(t, what, h, code)
		}
		if counted := errorsOf(workload) - before; counted != 1 {
			t.Errorf("%s counts %d times, want 1", what, counted)
		}
	}
	refused("of several packets, in mode packet", "packet", 10_000, 0, api.CodeTooLarge)
	refused("too large", "assemble", 70<<10, 0, api.CodeTooLarge)
	refused("too large for a stream", "stream", 70<<10, 0, api.CodeTooLarge)
	refused("once, in mode stream", "stream", 3000, api.FlagOnce, api.CodeTooLarge)
	deploy(t, n, probe(t, workloads["assemble"], 2, "message: {mode: assemble, max: 64KiB, in_flight: 1, timeout: 1m}"))
	call(t, n, fragments("assemble", methodTake, make([]byte, 3000), 1000)[0])
	refused("one too many", "assemble", 3000, 0, api.CodeBusy)
}

// The run of a message that is executed at most once failed: repeated packets and pulls are told why.
func TestRememberedFault(t *testing.T) {
	n := everyMode(t)
	for method, cause := range map[uint32]api.Fault{methodFault: api.FaultOwn, methodOutside: api.FaultBounds} {
		list := fragments("assemble", method, randomBytes(3000), 1000)
		for i := range list {
			list[i].RPC.Flags |= api.FlagOnce
			if h, _ := call(t, n, list[i]); i < len(list)-1 && h.Type != api.TypeAck {
				t.Fatalf("packet %d: got %+v", i, h)
			}
		}
		for i := range list {
			h, _ := call(t, n, list[i])
			wantCode(t, "a packet again", h, api.CodeLambdaFault)
			if api.Fault(h.MessageLen) != cause {
				t.Errorf("packet %d again: a fault by %q, want %q", i, api.Fault(h.MessageLen), cause)
			}
		}
		h, _ := call(t, n, pull(list[0], api.Header{Revision: 1, Count: 3, Length: 1000}, 0))
		wantCode(t, "a pull", h, api.CodeLambdaFault)
		if api.Fault(h.MessageLen) != cause {
			t.Errorf("a pull: a fault by %q, want %q", api.Fault(h.MessageLen), cause)
		}
	}
}

// A stream that answers each packet answers each copy of it. A stream that takes packets in answers the one that completes the message,
// and any repeated one.
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

// No more messages than in_flight are begun. Those in progress are finished all the same, and make room only when they are
// forgotten.
func TestMessageRecordsAreBounded(t *testing.T) {
	const timeout = time.Minute // no message is forgotten until the test ages it
	n := newTestNIC(t)
	for i, inFlight := range []int{1, 2, 3, 4, 8, 64} {
		name := fmt.Sprint("in flight ", inFlight)
		workloads := map[string]uint32{"": uint32(i + 1)}
		deploy(t, n, probe(t, uint32(i+1), 1, fmt.Sprintf("message: {mode: assemble, max: 2KiB, in_flight: %d, timeout: %v}", inFlight, timeout)))
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
		fill := func() (begun [][]packets.Frame) {
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
			return begun
		}
		for _, list := range fill() {
			if h, p := send(list[1]); h.Type != api.TypeResponse || string(p) != list[0].RPC.Payload {
				t.Errorf("%s: finished message: got %+v %q", name, h, p)
			}
		}
		fill() // in place of answered ones
		passTime(t, n, slotOf(n, uint32(i+1)), timeout)
		fill() // in place of expired ones
	}
}

// Packets that contradict their message's other packets are malformed, whichever came first, and do the message no harm.
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

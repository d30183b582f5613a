package nic

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
)

// onceFrame is a request of one packet with a request ID of its own, which is to be executed at most once.
func onceFrame(workload string, method uint32, payload string, room int) packets.Frame {
	return packets.Frame{RPC: packets.RPC{
		Workload: workload, Method: method, Flags: api.FlagOnce, Request: requests.Add(1), Payload: payload, Room: room,
	}}
}

// from sends a frame from another address, 192.0.2.N.
func from(f packets.Frame, n int) packets.Frame {
	f.Checksum, f.Patch = "none", map[string]string{"ip+12": fmt.Sprintf("c00002%02x", n)}
	return f
}

// runsOf are the runs of probe, in the answer to its method count.
func runsOf(t testing.TB, n *NIC, f packets.Frame) uint32 {
	t.Helper()
	h, p := call(t, n, f)
	if h.Type != api.TypeResponse || len(p) != 8 {
		t.Fatalf("got %+v %x, want a count", h, p)
	}
	return binary.LittleEndian.Uint32(p[4:])
}

// onceModes brings a NIC up with a lambda of each mode, whose messages have room to be remembered.
func onceModes(t testing.TB) *NIC {
	t.Helper()
	n := everyMode(t)
	deploy(t, n, probe(t, workloads["assemble"], 2, "message: {mode: assemble, max: 4KiB, in_flight: 128}"))
	return n
}

// A request comes again, in any form: the remembered answer saves a run, and is the same, byte for byte.
func TestOnce(t *testing.T) {
	n := onceModes(t)
	text := strings.Repeat("remember me ", 100)
	for _, test := range []struct {
		workload string
		method   uint32
		payload  string
		room     int
		want     api.Type
		fault    api.Fault
	}{
		{"packet", methodCount, "", 8, api.TypeResponse, 0},
		{"packet", methodStamp, text, 1400, api.TypeResponse, 0},
		{"packet", methodEcho, "", 0, api.TypeResponse, 0},
		{"packet", methodFault, text, 1400, api.TypeError, api.FaultOwn},
		{"packet", methodOutside, text, 1400, api.TypeError, api.FaultBounds},
		{"stream", methodStamp, text, 1400, api.TypeResponse, 0},
		{"assemble", methodStamp, text, 1400, api.TypeResponse, 0},
		{"stream", methodOutside, text, 1400, api.TypeError, api.FaultBounds},
		{"assemble", methodFault, text, 1400, api.TypeError, api.FaultOwn},
		{"assemble", methodOutside, text, 1400, api.TypeError, api.FaultBounds},
	} {
		f := onceFrame(test.workload, test.method, test.payload, test.room)
		first, body := call(t, n, f)
		if first.Type != test.want || first.Type == api.TypeError && api.Fault(first.MessageLen) != test.fault {
			t.Errorf("%+v: got %+v", test, first)
		}
		for i := range 3 {
			call(t, n, onceFrame(test.workload, test.method, "another request, whose payload is in the way", 200))
			if f.RPC.Flags |= api.FlagResend; i == 2 {
				f.RPC.Method = methodEcho // the request ID decides
				first.Method = methodEcho
			}
			if again, b := call(t, n, f); again != first || !bytes.Equal(b, body) {
				t.Errorf("%+v: time %d: got\n%+v, want\n%+v", test, i, again, first)
			}
		}
		other := f // the same ID from somebody else is another request
		other.RPC.Method = test.method
		if h, b := call(t, n, from(other, 77)); h.Type != first.Type || test.method == methodStamp && bytes.Equal(b, body) {
			t.Errorf("%+v: somebody else's request: got %+v", test, h)
		}
	}
}

// If the first run gave no answer, or the client has it, repeated packets are dropped. Nobody else can say that the client has it.
func TestOnceReleased(t *testing.T) {
	n := onceModes(t)
	for _, workload := range []string{"packet", "stream", "assemble"} {
		f := onceFrame(workload, methodCount, "", 8)
		before := runsOf(t, n, f)
		end := done(f)
		end.RPC.Flags |= api.FlagOnce
		call(t, n, from(end, 78))
		if runs := runsOf(t, n, f); runs != before {
			t.Errorf("%s: ran %d times, want %d", workload, runs, before)
		}
		call(t, n, end)
		if h, _ := call(t, n, f); h.Type != 0 {
			t.Errorf("%s: got %+v for what was answered and done", workload, h)
		}
		drop := onceFrame(workload, methodDrop, "x", 8)
		for range 2 {
			if h, _ := call(t, n, drop); h.Type != 0 {
				t.Errorf("%s: got %+v for what is dropped", workload, h)
			}
		}
		if runs := runsOf(t, n, onceFrame(workload, methodCount, "", 8)); runs != before+1 {
			t.Errorf("%s: ran %d times, want %d", workload, runs, before+1)
		}
	}
}

// A request that cannot be answered in one packet is refused, and the lambda does not run a second time for it.
func TestOnceRefused(t *testing.T) {
	n := onceModes(t)
	long := onceFrame("web", 0, "/long", 100) // the reply has more packets than one
	h, _ := call(t, n, long)
	wantCode(t, "a reply of many packets", h, api.CodeTooLarge)
	if h.MessageLen != 0 {
		t.Errorf("it asks for %d bytes of room", h.MessageLen)
	}
	typ, count, size := api.TypePull, uint32(20), uint32(100)
	long.RPC.Type, long.RPC.Index, long.RPC.Count, long.RPC.MessageLen, long.RPC.Revision = &typ, 1, &count, &size, 1
	h, _ = call(t, n, long)
	wantCode(t, "a pull", h, api.CodeStale)
	parts := fragments("stream", methodEcho, randomBytes(3000), 1000)
	parts[0].RPC.Flags |= api.FlagOnce
	h, _ = call(t, n, parts[0])
	wantCode(t, "a message in mode stream", h, api.CodeTooLarge)
	small := onceFrame("packet", methodEcho, "eight by", 8)
	call(t, n, small)
	small.RPC.Payload, small.RPC.Room = "", 4
	h, _ = call(t, n, small)
	wantCode(t, "too little room for what is remembered", h, api.CodeTooLarge)
	if h.MessageLen != 8 {
		t.Errorf("it asks for %d bytes of room, want 8", h.MessageLen)
	}
}

// A flood of requests, from one address or for one workload, makes the NIC forget its own answers before any other's.
func TestOnceFlood(t *testing.T) {
	n := onceModes(t)
	// An answer is always forgotten after 10 s (LN_ONCE_NS in bpf/layout.h). If a flood took longer, one half as large follows.
	const remembered = 10 * time.Second
	for name, flooder := range map[string]func(packets.Frame) packets.Frame{
		"from one address": func(f packets.Frame) packets.Frame { return from(f, 66) },
		"for one workload, from addresses": func(f packets.Frame) packets.Frame {
			f.RPC.Workload = "stream"
			return from(f, 3+int(f.RPC.Request)%200)
		},
	} {
		flooded := func(flood int) bool {
			began := now(t)
			var kept []packets.Frame
			var answers []uint32
			for i := range 40 {
				f := from(onceFrame("packet", methodCount, "", 8), 100+i)
				kept, answers = append(kept, f), append(answers, runsOf(t, n, f))
			}
			for range flood {
				f := flooder(onceFrame("packet", methodEcho, "/", 64))
				if h, _ := call(t, n, f); h.Type != api.TypeResponse {
					t.Fatalf("%s: got %+v", name, h)
				}
			}
			var again []int
			for i, f := range kept {
				if runsOf(t, n, f) != answers[i] {
					again = append(again, i)
				}
			}
			if now(t)-began >= uint64(remembered) {
				return false
			}
			if len(again) > 0 {
				t.Errorf("%s, of %d: requests %d ran again", name, flood, again)
			}
			return true
		}
		for flood := 16384; !flooded(flood); flood /= 2 { // of 8192 records
		}
	}
}

package nic

import (
	"bytes"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/packets"
)

// A flood of first packets, each from another address, takes only free records of its own workload: messages in progress, of any
// workload, are completed, and other workloads begin new ones.
func TestFloodOfFirstPackets(t *testing.T) {
	n := everyMode(t)
	type begun struct {
		list    []packets.Frame
		message []byte
	}
	var all []begun
	start := func(workload string) {
		b := begun{message: randomBytes(5000)}
		b.list = fragments(workload, methodStamp, b.message, 1000)
		for _, f := range b.list[:4] {
			if h, _ := call(t, n, f); h.Type == api.TypeError {
				t.Fatalf("%s: got %+v", workload, h)
			}
		}
		all = append(all, b)
	}
	start("assemble")
	deploy(t, n, probe(t, workloads["nobody"], 1, assembleSpec))
	start("nobody") // another workload by now
	busy := 0
	for i := range 3000 {
		f := from(fragments("assemble", methodStamp, make([]byte, 4000), 1000)[0], 3+i%250)
		if h, _ := call(t, n, f); h.Type == api.TypeError && api.Code(h.Code) == api.CodeBusy {
			busy++
		}
	}
	if busy < 2900 || counted(t, n, "busy") != uint64(busy) {
		t.Errorf("%d of the flood were refused, %d counted", busy, counted(t, n, "busy"))
	}
	start("nobody")
	for i, b := range all {
		last := b.list[4]
		first, reply := call(t, n, last)
		if first.Type != api.TypeResponse {
			t.Fatalf("message %d: got %+v", i, first)
		}
		reply = pullAll(t, n, last, first, reply)
		if !bytes.Equal(reply[8:4996], b.message[8:4996]) {
			t.Errorf("message %d: wrong reply", i)
		}
	}
}

// Others cannot change a client's message: not by saying that it is done, by pulling its reply, by other bytes for packets that came, or
// by other counts.
func TestForgedPackets(t *testing.T) {
	n := everyMode(t)
	message := randomBytes(5000)
	list := fragments("assemble", methodStamp, message, 1000)
	for _, f := range list[:4] {
		call(t, n, f)
		call(t, n, from(done(f), 90))
		again := f // packet i with other bytes: the first stands
		again.RPC.Payload = string(randomBytes(1000))
		if h, _ := call(t, n, again); h.Type != api.TypeAck {
			t.Errorf("other bytes: got %+v", h)
		}
	}
	lie := func(what string, change func(*packets.RPC)) {
		f := list[4]
		change(&f.RPC)
		h, _ := call(t, n, f)
		wantCode(t, what, h, api.CodeMalformed)
	}
	more, longer := uint32(6), uint32(5001)
	lie("another count", func(r *packets.RPC) { r.Count, r.MessageLen = &more, ptr(uint32(5500)) })
	lie("another length", func(r *packets.RPC) { r.MessageLen, r.Payload = &longer, string(make([]byte, 1001)) })
	lie("another packet size", func(r *packets.RPC) {
		r.Index, r.Count, r.MessageLen, r.Payload = 0, ptr(uint32(5)), ptr(uint32(4400)), string(make([]byte, 900))
	})
	lie("no packets", func(r *packets.RPC) { r.Count = ptr(uint32(0)) })
	lie("billions of packets", func(r *packets.RPC) { r.Count, r.MessageLen = ptr(^uint32(0)), ptr(^uint32(0)) })
	first, reply := call(t, n, list[4])
	if first.Type != api.TypeResponse {
		t.Fatalf("got %+v", first)
	}
	h, _ := call(t, n, from(pull(list[4], first, 1), 90))
	wantCode(t, "somebody else's pull", h, api.CodeStale)
	call(t, n, from(done(list[4]), 90))
	if reply = pullAll(t, n, list[4], first, reply); !bytes.Equal(reply[8:4996], message[8:4996]) {
		t.Error("wrong reply")
	}
}

func ptr[T any](v T) *T { return &v }

package nic

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// The probe's methods (test/lambdas/probe/probe.c).
const (
	probeEcho, probeStatus, probeFault, probeDrop, probeLong = 0, 2, 3, 4, 7
)

// A lambda in mode packet whose reply needs several packets.
const longReply = `#include "lambda.h"
static uint8_t text[5000 + LAMBDA_WINDOW];
int longest(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)
{
	return lambda_reply_from(headers, match_data, text, 0, 5000);
}
`

// A lambda that is asked in this thread answers as over the link.
func TestAskAnswersAsTheLink(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, bundled(t, "web_server", 5, 9), probe(t, 6, 2, "message: {mode: packet}"))
	link, err := lambdanic.DialConn(n.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	for _, q := range []lambdanic.Request{
		{Workload: 5, Body: []byte("/hello")},
		{Workload: 5, Body: []byte("/nothing")},
		{Workload: 5},
		{Workload: 6, Method: probeEcho, Body: bytes.Repeat([]byte{7}, api.RPCMaxPayload)},
		{Workload: 6, Method: probeStatus, Body: []byte{3, 0, 0, 0}},
		{Workload: 6, Method: probeFault, Body: []byte{0, 0, 0, 0}},
		{Workload: 6, Method: probeLong, Body: []byte{0, 0, 0, 0}},
		{Workload: 8}, // unknown
	} {
		h, payload, ok, err := n.Ask(api.Header{Workload: q.Workload, Method: q.Method, Request: 99, DeadlineUS: 1e6}, q.Body, nil)
		if err != nil || !ok {
			t.Errorf("%d/%d: %t, %v", q.Workload, q.Method, ok, err)
			continue
		}
		want, err := link.Call(t.Context(), q)
		var failed *lambdanic.RPCError
		switch {
		case errors.As(err, &failed):
			if h.Type != api.TypeError || !errors.Is(lambdanic.ErrorOf(&h), failed) || lambdanic.ErrorOf(&h).Fault != failed.Fault {
				t.Errorf("%d/%d: asked %+v, by the link %v", q.Workload, q.Method, h, err)
			}
		case err != nil:
			t.Error(err)
		case h.Type != api.TypeResponse || !bytes.Equal(payload, want.Body) || h.Code != uint8(want.Status) || h.Revision != want.Revision:
			t.Errorf("%d/%d: asked %+v %q, by the link %+v", q.Workload, q.Method, h, payload, want)
		}
	}
}

// Who asks in this thread has the keys: it needs no tag, also where what comes by the link does.
func TestAskNeedsNoTag(t *testing.T) {
	n := newTagged(t)
	keyed(t, n, true, 1)
	h, payload, ok, err := n.Ask(api.Header{Workload: workloads["packet"], Request: 99}, []byte("hello"), nil)
	if err != nil || !ok || h.Type != api.TypeResponse || string(payload) != "hello" || h.Flags&api.FlagTag != 0 {
		t.Errorf("asked: %+v %q, %t, %v", h, payload, ok, err)
	}
	h, _ = send(t, n, request("hello"))
	wantCode(t, "the same by the link", h, api.CodeBadTag)
}

// A request without an answer of one packet is left to the link, and each request is counted once.
func TestAskHasNoAnswer(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, probe(t, 6, 2, "message: {mode: packet}"))
	a, err := buildFiles(map[string][]byte{"longest.c": []byte(longReply), api.SpecFile: []byte("name: longest\n")})
	if err != nil {
		t.Fatal(err)
	}
	deploy(t, n, deployment(a, 7, 1))
	for name, q := range map[string]api.Header{"dropped": {Workload: 6, Method: probeDrop}, "several packets": {Workload: 7}} {
		if _, _, ok, err := n.Ask(q, []byte{0, 0, 0, 0}, nil); ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
	if _, _, ok, err := n.Ask(api.Header{Workload: 6}, make([]byte, api.RPCMaxPayload+1), nil); ok || err != nil {
		t.Errorf("too long: %t, %v", ok, err)
	}
	list, err := n.Status(t.Context())
	if err != nil || len(list) != 2 || list[0].Stats.Requests != 1 || list[1].Stats.Requests != 1 {
		t.Errorf("%+v, %v: want 1 request of each", list, err)
	}
	shut(t, n)
	if _, _, ok, err := n.Ask(api.Header{Workload: 6}, nil, nil); ok || err != nil {
		t.Errorf("a closed NIC: %t, %v", ok, err)
	}
}

// Requests from the link and from this machine's threads run in the same program on the same CPUs, and none gets another's answer.
func TestAskBesideTheLink(t *testing.T) {
	n := newTestNIC(t)
	deploy(t, n, probe(t, 6, 2, "message: {mode: packet}"))
	const calls = 20000
	body := func(caller, call uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, caller)
		return bytes.Repeat(binary.BigEndian.AppendUint32(b, call), 1+int(call%64))
	}
	var callers sync.WaitGroup
	for caller := range uint32(2) {
		callers.Go(func() {
			for call := range uint32(calls) {
				want := body(caller, call)
				if _, got, ok, err := n.Ask(api.Header{Workload: 6, Request: uint64(call)}, want, nil); !ok || err != nil || !bytes.Equal(got, want) {
					t.Errorf("asked: call %d: %t, %v, %x", call, ok, err, got)
					return
				}
			}
		})
		callers.Go(func() {
			link, err := lambdanic.DialConn(n.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer link.Close()
			for call := range uint32(calls) {
				want := body(caller+2, call)
				if got, err := link.Call(t.Context(), lambdanic.Request{Workload: 6, Body: want}); err != nil || !bytes.Equal(got.Body, want) {
					t.Errorf("by the link: call %d: %v, %x", call, err, got.Body)
					return
				}
			}
		})
	}
	callers.Wait()
}

func BenchmarkAsk(b *testing.B) {
	n := newTestNIC(b)
	deploy(b, n, bundled(b, "web_server", 5, 9))
	body := []byte("/hello")
	reply := make([]byte, 0, api.RPCMaxPayload)
	for b.Loop() {
		if _, _, ok, err := n.Ask(api.Header{Workload: 5, Request: 1}, body, reply); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

package wireshark

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/impair"
	"github.com/lambdanic/lambdanic/test/rpcserver"
)

type datagram struct {
	from, to netip.AddrPort
	p        []byte
}

// What the Go client and a server say over a bad network is followed: every answer finds its question, every message becomes whole,
// and what was sent again is found out without looking at its flag.
func TestRealExchange(t *testing.T) {
	request, reply := bytes.Repeat([]byte("question "), 2000), bytes.Repeat([]byte("answer "), 3000)
	s, err := rpcserver.Start("127.0.0.1:0", map[uint32]rpcserver.Workload{
		5: {Mode: api.ModeAssemble, Revision: 3, Whole: true, Handle: func(uint32, []byte) ([]byte, api.Status) { return reply, api.StatusOK }},
	}, rpcserver.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var mu sync.Mutex
	var seen []datagram
	faults := impair.Faults{Seed: 4, Drop: 0.1}
	r, err := impair.Start(impair.Config{
		Listen: "127.0.0.1:0", Server: s.Addr(), Up: faults, Down: faults,
		Tap: func(d impair.Direction, client netip.AddrPort, p []byte) {
			mu.Lock()
			defer mu.Unlock()
			if d == impair.ToServer {
				seen = append(seen, datagram{client, s.Addr(), p})
			} else {
				seen = append(seen, datagram{s.Addr(), client, p})
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, err := lambdanic.DialConn(r.Addr().String(), lambdanic.WithTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 3 {
		got, err := c.Call(t.Context(), lambdanic.Request{Workload: 5, Body: request})
		if err != nil || !bytes.Equal(got.Body, reply) {
			t.Fatalf("%d bytes, %v", len(got.Body), err)
		}
	}
	r.Close()
	checkExchange(t, seen, request, reply)
}

func checkExchange(t *testing.T, seen []datagram, request, reply []byte) {
	t.Helper()
	pcap := newCapture(t)
	again := map[string]bool{}
	for _, d := range seen {
		pcap.add(d.from, d.to, d.p)
	}
	var messages [2]int
	for i, f := range pcap.dissect() {
		h, payload, err := api.ParsePacket(seen[i].p)
		if err != nil {
			t.Fatal(err)
		}
		if f.number(t, "lambda_rpc.request") != h.Request || int(f.number(t, "lambda_rpc.length")) != len(payload) {
			t.Fatalf("frame %d: %v", i+1, f)
		}
		fromServer := h.Type == api.TypeResponse || h.Type == api.TypeAck && h.Flags&api.FlagDone == 0
		if fromServer && f.get("lambda_rpc.request_in") == "" {
			t.Errorf("frame %d answers nothing: %+v", i+1, h)
		}
		key := string(append([]byte{byte(h.Type)}, seen[i].p[16:28]...)) // type, request and index
		if !fromServer && again[key] != (f.get("lambda_rpc.resend_of") != "") {
			t.Errorf("frame %d: seen before is %t, but: %v", i+1, again[key], f)
		}
		again[key] = again[key] || !fromServer
		if m := f.get("lambda_rpc.message"); m != "" {
			whole, err := hex.DecodeString(strings.ReplaceAll(m, ":", ""))
			want, side := request, 0
			if h.Type == api.TypeResponse {
				want, side = reply, 1
			}
			if err != nil || !bytes.Equal(whole, want) {
				t.Errorf("frame %d: a message of %d bytes, %v", i+1, len(whole), err)
			}
			messages[side]++
		}
	}
	if messages != [2]int{3, 3} {
		t.Errorf("%v messages became whole, want 3 each way", messages)
	}
}

package lambdanic

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	frames "github.com/lambdanic/lambdanic/test/packets"
)

func testKey(number uint32) api.Key {
	return api.Key{Namespace: "tenant", Number: number, Secret: [api.SecretLen]byte([]byte("a secret, really"))}
}

// answering answers each request of one packet by what answer makes of its header.
func answering(t *testing.T, answer func(h api.Header, payload []byte) [][]byte) (addr string) {
	t.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			h, payload, err := api.ParsePacket(buf[:n])
			if err != nil {
				t.Errorf("the client sent %x: %v", buf[:n], err)
				return
			}
			for _, p := range answer(h, payload) {
				_, _ = conn.WriteToUDPAddrPort(p, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// response is an answer to a request, tagged by a key if there is one.
func response(h api.Header, body string, k *api.Key) []byte {
	h.Type, h.Flags, h.Index, h.Count, h.Length, h.MessageLen, h.Tag = api.TypeResponse, 0, 0, 1, uint16(len(body)), uint32(len(body)), 0
	if k != nil {
		h.Flags = k.TagFlags(true)
		h.Tag = frames.Tag(k, h.Flags, h.Append(nil), []byte(body))
	}
	return append(h.Append(nil), body...)
}

// A client with a key tags each packet, with a sequence number that no other has, and takes only answers that are tagged by its key.
func TestTaggedCalls(t *testing.T) {
	k, other := testKey(7), testKey(7)
	other.Secret[3]++
	var mu sync.Mutex
	seen := map[[2]uint32]bool{}
	addr := answering(t, func(h api.Header, payload []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		id := [2]uint32{h.Client, h.Sequence}
		if h.Tag != frames.Tag(&k, h.Flags, h.Append(nil), payload) || h.Flags&tagFlags != api.FlagTag|api.FlagTagPayload|api.FlagOddKey || seen[id] || h.Client == 0 {
			t.Errorf("the client sent %+v", h)
		}
		seen[id] = true
		refusal := api.Header{Type: api.TypeError, Code: uint8(api.CodeBadTag), Workload: h.Workload, Request: h.Request, Count: 1}
		changed := response(h, "right", &k)
		changed[api.RPCHeaderLen]++
		return [][]byte{refusal.Append(nil), response(h, "untagged", nil), response(h, "another's", &other), changed, response(h, "right", &k)}
	})
	for _, call := range clients(t, addr, WithKey(k)) {
		for range 20 {
			r, err := call(t.Context(), Request{Workload: 1, Body: []byte("question")})
			if err != nil || string(r.Body) != "right" {
				t.Fatalf("%q (%v), want the answer with the right tag", r.Body, err)
			}
		}
	}
}

// clients are the calls of a Client and of a Conn.
func clients(t *testing.T, addr string, opts ...Option) []func(context.Context, Request) (Response, error) {
	t.Helper()
	client, err := Dial(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	conn, err := DialConn(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return []func(context.Context, Request) (Response, error){client.Call, conn.Call}
}

// answerTime is how long calls wait that are only answered without a tag: long enough for that answer on any machine.
const answerTime = 2 * time.Second

// Without the right key, a call ends at its deadline, with what the server said.
func TestUntaggedError(t *testing.T) {
	addr := answering(t, func(h api.Header, _ []byte) [][]byte {
		h.Type, h.Flags, h.Code, h.Tag, h.Length, h.Count = api.TypeError, 0, uint8(api.CodeBadTag), 0, 0, 1
		return [][]byte{h.Append(nil)}
	})
	for _, call := range clients(t, addr, WithKey(testKey(2))) {
		ctx, cancel := context.WithTimeout(t.Context(), answerTime)
		_, err := call(ctx, Request{Workload: 1})
		cancel()
		if !errors.Is(err, ErrBadTag) || !errors.Is(err, ErrDeadlineExceeded) {
			t.Errorf("got %v, want the deadline and the bad tag", err)
		}
	}
}

// What an error without a tag says lets no call start over, whose time would begin anew.
func TestUntaggedStale(t *testing.T) {
	addr := answering(t, func(h api.Header, _ []byte) [][]byte {
		h.Type, h.Flags, h.Code, h.Tag, h.Length, h.Count = api.TypeError, 0, uint8(api.CodeStale), 0, 0, 1
		return [][]byte{h.Append(nil)}
	})
	client, err := Dial(addr, WithKey(testKey(2)), WithTimeout(answerTime))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Call(t.Context(), Request{Workload: 1})
	if n := client.Stats().Restarts; !errors.Is(err, ErrStale) || !errors.Is(err, ErrDeadlineExceeded) || n != 0 {
		t.Errorf("got %v after %d restarts", err, n)
	}
}

// After 2^32 packets, a client has another identity, and is never the anonymous one.
func TestTaggerOverflows(t *testing.T) {
	k := testKey(2)
	tag := newTagger(&k, false)
	tag.client = math.MaxUint32
	tag.sent.Store(math.MaxUint32 - 1)
	seen := map[[2]uint32]bool{}
	for range 4 {
		var b batch
		b.append(&api.Header{Type: api.TypeRequest, Count: 1}, []byte("x"), 8)
		tag.tagAll(&b)
		h, payload, err := api.ParsePacket(b.buf)
		if err != nil || h.Client == 0 || seen[[2]uint32{h.Client, h.Sequence}] || !tag.accepts(&h, payload) {
			t.Errorf("%+v, %v", h, err)
		}
		seen[[2]uint32{h.Client, h.Sequence}] = true
	}
}

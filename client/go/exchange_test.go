package lambdanic

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/quick"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// Every message, cut as the protocol says, is put together from the packets' own placement.
func TestFragmentsCoverMessage(t *testing.T) {
	property := func(length uint32, cut uint16) bool {
		n, s := int(length%(1<<21)), int(cut%api.RPCMaxPayload)+1
		count := api.Fragments(n, s)
		at := 0
		for i := range count {
			h := api.Header{Index: uint32(i), Count: uint32(count), MessageLen: uint32(n), Length: uint16(min(s, n-i*s))}
			offset, size, err := h.Placement()
			if err != nil || offset != at || count > 1 && size != s {
				t.Logf("packet %d of %d, %d bytes in %d: at %d, size %d, %v", i, count, n, s, offset, size, err)
				return false
			}
			at += int(h.Length)
		}
		return at == n
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestRequestPackets(t *testing.T) {
	property := func(length uint32, single bool) bool {
		n, most := int(length%(1<<20)), api.RPCMaxPayload
		if single {
			n, most = n%(2*api.RPCMaxPayload), api.RPCMaxPayload-20
		}
		count, size := packets(n, most, api.RPCFragment)
		s := bytesSource{body: make([]byte, n), fragSize: size}
		sum := 0
		for i := range count {
			p := s.fragment(i)
			if i < count-1 && len(p) != api.RPCFragment || len(p) > most {
				return false
			}
			sum += len(p)
		}
		return sum == n && (count == 1) == (n <= most)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

// However packets are lost, confirmed twice or out of order, a flight gets all of them through, within its window.
func TestFlightDeliversAll(t *testing.T) {
	property := func(seed uint64, n uint16, percent uint8) bool {
		r := rand.New(rand.NewPCG(seed, 1))
		var f flight
		f.start(int(n%3000)+1, false)
		got := make([]int, f.count)
		now := time.Duration(0)
		for !f.done() {
			f.expire(now)
			var sent []int
			for {
				i, _, ok := f.pick(now, noLimit)
				if !ok {
					break
				}
				sent = append(sent, i)
			}
			if f.outstanding > f.window || f.window > maxWindow || f.next-f.base > len(f.ring) {
				t.Logf("%d outstanding in a window of %d", f.outstanding, f.window)
				return false
			}
			r.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
			for _, i := range sent {
				if r.IntN(100) >= int(percent%90) && f.confirm(i) {
					got[i]++
				}
				f.confirm(r.IntN(f.next)) // maybe late, maybe wrong: at worst it ends the packet's resends
			}
			now = max(now+time.Millisecond, min(f.expiry, now+lastInterval))
			if now > 10*time.Minute {
				t.Log("no progress")
				return false
			}
		}
		for _, n := range got {
			if n > 1 {
				return false
			}
		}
		return f.outstanding == 0 && f.lost == 0
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 200}); err != nil {
		t.Error(err)
	}
}

// FuzzReceive feeds an exchange whatever arrives. It must not panic, must not accept more than it may, and must go on to
// the right answer if the genuine packets come after all, unless it ended.
func FuzzReceive(f *testing.F) {
	head := api.Header{Type: api.TypeResponse, Workload: 1, Request: 9, Count: 1, MessageLen: 3, Length: 3}
	f.Add(uint32(3), append(head.Append(nil), 1, 2, 3))
	head.Count, head.MessageLen = 3, 9
	f.Add(uint32(4000), append(head.Append(nil), 1, 2, 3))
	head.Type, head.Length = api.TypeAck, 8
	f.Add(uint32(9000), append(head.Append(nil), 255, 255, 255, 255, 255, 255, 255, 255))
	head.Type, head.Length, head.Code = api.TypeError, 0, 10
	f.Add(uint32(9000), head.Append(nil))
	f.Fuzz(func(t *testing.T, size uint32, wire []byte) {
		body := make([]byte, size%(1<<20))
		count, fragment := packets(len(body), api.RPCMaxPayload, api.RPCFragment)
		var x exchange
		var reply bytesSink
		var b batch
		x.max = 1 << 20
		x.start(0, never, api.Header{
			Type: api.TypeRequest, Workload: 1, Request: 9, Count: uint32(count), MessageLen: uint32(len(body)),
		}, max(512, fragment*min(1, count-1)), false, &bytesSource{body: body, fragSize: fragment}, &reply)
		now := time.Duration(0)
		for len(wire) > 0 { // cut into datagrams by their own lengths
			x.poll(now, &b)
			n := min(len(wire), api.RPCHeaderLen)
			if n == api.RPCHeaderLen {
				n = min(len(wire), n+int(be.Uint16(wire[6:])))
			}
			if h, p, err := api.ParsePacket(wire[:n]); err == nil {
				x.receive(now, &h, p)
			}
			wire = wire[n:]
			now += 15 * time.Millisecond
		}
		x.poll(now, &b)
		if len(reply.buf) > x.max || len(b.buf) > batchBytes+batchPackets {
			t.Fatalf("%d bytes of reply, %d of packets", len(reply.buf), len(b.buf))
		}
		if x.finished && x.err == nil && !x.begun {
			t.Fatal("finished without a response")
		}
	})
}

// FuzzParsePacket: what parses is written back to the same bytes.
func FuzzParsePacket(f *testing.F) {
	head := api.Header{Type: api.TypeRequest, Count: 1, MessageLen: 2, Length: 2}
	f.Add(append(head.Append(nil), 1, 2, 0, 0))
	f.Fuzz(func(t *testing.T, wire []byte) {
		h, p, err := api.ParsePacket(wire)
		if err != nil {
			return
		}
		if again := append(h.Append(nil), p...); !bytes.Equal(again, wire[:len(again)]) {
			t.Fatalf("%x became %x", wire, again)
		}
		if offset, _, err := h.Placement(); err == nil && offset+len(p) > int(h.MessageLen) {
			t.Fatalf("%+v ends beyond its message", h)
		}
	})
}

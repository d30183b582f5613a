package session

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// TestReplicate sends from several CPUs at once, and reads each ring at its own pace: each has all messages, whole, and those of a sender in order.
func TestReplicate(t *testing.T) {
	const rings, senders, messages, ahead = 5, 2, 1500, 20
	s := steer(t, "replicate", lambdanic.Rings{Count: rings, Size: 1 << 16}, nil)
	message := func(sender int, n uint32) []byte {
		rnd := rand.New(rand.NewPCG(uint64(sender), uint64(n)))
		m := binary.BigEndian.AppendUint32([]byte{byte(sender)}, n)
		return append(m, bytes.Repeat([]byte{byte(rnd.Uint32())}, rnd.IntN(500))...)
	}
	var may [senders][rings]chan bool // a ring has room for what is not yet read
	for i := range may {
		for r := range may[i] {
			may[i][r] = make(chan bool, ahead)
		}
		client := s.dial()
		go func() {
			isolated.Pin(t, i)
			for n := range uint32(messages) {
				for _, room := range may[i] {
					room <- true
				}
				_, _ = client.Write(message(i, n))
			}
		}()
	}
	var all sync.WaitGroup
	for at, ring := range s.rings {
		all.Go(func() {
			var next [senders]uint32
			for range senders * messages {
				m, err := ring.Read()
				if err != nil {
					t.Errorf("ring %d: %v after %v messages", at, err, next)
					return
				}
				sender := int(m.Data[0])
				if want := message(sender, next[sender]); !bytes.Equal(m.Data, want) {
					t.Errorf("ring %d: got %x, want %x", at, m.Data, want)
					return
				}
				next[sender]++
				<-may[sender][at]
			}
		})
	}
	all.Wait()
	s.sent = rings * senders * messages
	if _, refused := s.settle(); refused != 0 {
		t.Errorf("%d messages are refused", refused)
	}
}

// TestReplicateFull has a ring that nobody reads: it refuses what it has no room for, and counts that. The other and the socket have all.
func TestReplicateFull(t *testing.T) {
	s := steer(t, "replicate", lambdanic.Rings{Count: 2, Size: os.Getpagesize()}, nil)
	client, room := s.dial(), (os.Getpagesize()-8)/(8+48+104)
	b := make([]byte, 200)
	for i := range room + 7 {
		want := bytes.Repeat([]byte{byte(i)}, 104)
		s.send(client, want)
		if m, err := s.rings[1].Read(); err != nil || !bytes.Equal(m.Data, want) {
			t.Fatalf("message %d: got %x, %v", i, m.Data, err)
		}
		_ = s.server.SetReadDeadline(time.Now().Add(patience))
		if n, err := s.server.Read(b); err != nil || !bytes.Equal(b[:n], want) {
			t.Fatalf("message %d: the socket gets %x, %v", i, b[:n], err)
		}
	}
	counts, err := s.k.RingCounts()
	if err != nil || counts[0] != (lambdanic.RingCounts{Posted: uint64(room), Refused: 7}) || counts[1].Refused != 0 {
		t.Errorf("the rings count %+v, %v, want %d posted and 7 refused in the first", counts, err, room)
	}
	for i := range room {
		if m, err := s.rings[0].Read(); err != nil || m.Data[0] != byte(i) {
			t.Fatalf("message %d: got %x, %v", i, m.Data, err)
		}
	}
	if r, err := s.k.Read(); err != nil || r["messages"] != int64(room)+7 {
		t.Errorf("the registers are %v, %v", r, err)
	}
}

// TestReplicateMany has as many rings as there can be.
func TestReplicateMany(t *testing.T) {
	s := steer(t, "replicate", lambdanic.Rings{Count: 128, Size: 1 << 17}, nil)
	client := s.dial()
	for _, n := range []int{0, 1, 4097, 65507} {
		want := bytes.Repeat([]byte{byte(n)}, n)
		s.send(client, want)
		for i, ring := range s.rings {
			if m, err := ring.Read(); err != nil || !bytes.Equal(m.Data, want) {
				t.Fatalf("ring %d: got %d bytes of %d, %v", i, len(m.Data), n, err)
			}
		}
	}
}

package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// TestCoalesceIdle sends some updates, and then nothing: the interval has them posted, and then those that come later.
func TestCoalesceIdle(t *testing.T) {
	s := coalesce(t, os.Getpagesize(), map[string]int64{"key": 1, "value": 10, "interval": 20_000})
	client := s.dial()
	for i := range byte(3) {
		s.send(client, []byte{'b', i})
		s.send(client, []byte{'a', i})
		updates, last := uint64(0), map[string]string{}
		for updates < 2 {
			m, err := s.rings[0].Read()
			if err != nil {
				t.Fatal(err)
			}
			entries, n := s.parse(m.Data)
			updates += n
			for _, e := range entries {
				last[e.key] = e.value
			}
		}
		if want := map[string]string{"a": string(i), "b": string(i)}; !maps.Equal(last, want) {
			t.Fatalf("got %q, want %q", last, want)
		}
	}
	s.wantNothing()
}

// TestCoalesceIntervalLater writes the interval when updates are there already, and then a shorter one: the next update has all posted in time.
func TestCoalesceIntervalLater(t *testing.T) {
	s := coalesce(t, os.Getpagesize(), map[string]int64{"key": 1, "value": 10})
	client := s.dial()
	s.send(client, []byte("ax"))
	s.awaitAll(1)
	s.wantNothing()
	if err := s.k.Write(map[string]int64{"interval": 1 << 62}); err != nil { // an hour
		t.Fatal(err)
	}
	s.send(client, []byte("ay"))
	s.awaitAll(2)
	s.flush()
	s.want(2, entry{"a", "y"})
	s.wantNothing()
	s.send(client, []byte("az"))
	s.awaitAll(3)
	if err := s.k.Write(map[string]int64{"interval": 20_000}); err != nil {
		t.Fatal(err)
	}
	s.send(client, []byte("bz"))
	m, err := s.rings[0].Read()
	if err != nil {
		t.Fatal(err)
	}
	if entries, n := s.parse(m.Data); n != 2 || !slices.Equal(entries, []entry{{"a", "z"}, {"b", "z"}}) {
		t.Errorf("got %q of %d updates", entries, n)
	}
}

// TestCoalesceFull has a ring that nobody reads. Known keys are taken on, new ones go to the socket when both tables are full, and when the ring is read again,
// everything is there, in its order.
func TestCoalesceFull(t *testing.T) {
	isolated.Pin(t, 0)
	for _, interval := range []int64{0, 1000} {
		t.Run(fmt.Sprintf("every %d us", interval), func(t *testing.T) {
			const entries, stride = 20, 24 + 8
			s := coalesce(t, os.Getpagesize(), map[string]int64{"key": 2, "value": 1, "entries": entries})
			posted := (os.Getpagesize() - 8) / (8 + 48 + 16 + entries*stride)
			s.overfill(posted, entries, interval)
			for n := range posted {
				s.want(entries, coalesceBatch(n, entries, "1")...)
			}
			s.rings[0].Release()
			if interval == 0 {
				s.flush()
			} else {
				s.awaitRegister("batches", int64(posted)+2)
			}
			s.want(2*entries, coalesceBatch(posted, entries, "2")...)
			s.want(2*entries, coalesceBatch(posted+1, entries, "2")...)
			s.wantNothing()
			s.send(s.dial(), []byte(coalesceKey(0)+"4"))
			s.awaitAll(int64(s.sent))
			s.flush()
			s.want(1, entry{coalesceKey(0), "4"})
		})
	}
}

// overfill fills the ring with batches and the two tables, and then sends what is known and what is new.
func (s *coalesced) overfill(posted, entries int, interval int64) {
	s.t.Helper()
	client, fits := s.dial(), (posted+2)*entries
	for i := range fits {
		s.send(client, []byte(coalesceKey(i)+"1"))
	}
	s.awaitAll(int64(fits))
	s.wantRegisters(map[string]int64{"updates": int64(fits), "coalesced": 0, "batches": int64(posted), "passed": 0})
	if err := s.k.Write(map[string]int64{"interval": interval}); err != nil {
		s.t.Fatal(err)
	}
	for i := posted * entries; i < fits+5; i++ {
		s.send(client, []byte(coalesceKey(i)+"2"))
	}
	s.send(client, []byte(coalesceKey(0)+"3")) // it is in the ring already, and so it is new
	for i := range 5 {
		passes(s.t, s.server, []byte(coalesceKey(fits+i)+"2"))
	}
	passes(s.t, s.server, []byte(coalesceKey(0)+"3"))
	s.awaitAll(int64(s.sent))
	s.wantRegisters(map[string]int64{"passed": 6, "coalesced": 2 * int64(entries)})
	if interval != 0 {
		s.awaitRefused(20)
	}
}

func coalesceKey(i int) string { return string([]byte{byte(i >> 8), byte(i)}) }

// coalesceBatch is the n-th batch of as many keys as come one after the other.
func coalesceBatch(n, entries int, value string) (all []entry) {
	for i := range entries {
		all = append(all, entry{coalesceKey(n*entries + i), value})
	}
	return all
}

// awaitRefused waits until the ring has refused so many batches more.
func (s *coalesced) awaitRefused(more uint64) {
	s.t.Helper()
	for want, deadline := uint64(0), time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		counts, err := s.k.RingCounts()
		if err != nil {
			s.t.Fatal(err)
		}
		if want == 0 {
			want = counts[0].Refused + more
		}
		if counts[0].Refused >= want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the ring counts %+v, want %d refused", counts, want)
		}
	}
}

// TestCoalesceRoom is a ring that is too short for as many keys as a table has: batches have as many as fit.
func TestCoalesceRoom(t *testing.T) {
	s := coalesce(t, os.Getpagesize(), map[string]int64{"key": 2, "value": 64})
	client, fit := s.dial(), (os.Getpagesize()-8-8-48-16)/(24+64)
	for i := range fit + 1 {
		s.send(client, []byte{byte(i >> 8), byte(i)})
	}
	s.awaitAll(int64(fit) + 1)
	s.awaitRegister("batches", 1)
	if entries, _, ok := s.poll(); !ok || len(entries) != fit {
		t.Errorf("the batch has %d entries, want %d", len(entries), fit)
	}
	s.rings[0].Release()
	s.flush()
	if entries, _, ok := s.poll(); !ok || len(entries) != 1 {
		t.Errorf("the batch has %d entries, want 1", len(entries))
	}
}

// TestCoalesceMalformed sends what is no update among what is one: the socket gets it as it is.
func TestCoalesceMalformed(t *testing.T) {
	for operation, c := range map[int]struct{ bad, good []int }{
		coalesceLast: {[]int{0, 1, 3, 69, 70, 80, 81, 1400, 9000}, []int{4, 5, 67, 68}},
		coalesceSum:  {[]int{0, 3, 4, 11, 13, 80, 81, 1400}, []int{12}},
	} {
		t.Run(fmt.Sprint(operation), func(t *testing.T) {
			s := coalesce(t, 1<<14, map[string]int64{"key": 4, "value": 64, "operation": int64(operation)})
			client, b := s.dial(), make([]byte, 10000)
			for _, n := range c.bad {
				want := bytes.Repeat([]byte{byte(n)}, n)
				s.send(client, want)
				_ = s.server.SetReadDeadline(time.Now().Add(patience))
				if got, err := s.server.Read(b); err != nil || !bytes.Equal(b[:got], want) {
					t.Fatalf("the socket gets %d bytes, %v, want %d", got, err, n)
				}
			}
			var want []entry
			for _, n := range c.good {
				key, value := bytes.Repeat([]byte{byte(n)}, 4), bytes.Repeat([]byte{7}, n-4)
				s.send(client, append(bytes.Clone(key), value...))
				want = append(want, entry{string(key), string(value)})
			}
			s.awaitAll(int64(len(c.bad) + len(c.good)))
			s.flush()
			s.want(uint64(len(want)), want...)
			s.wantRegisters(map[string]int64{"malformed": int64(len(c.bad)), "updates": int64(len(c.good)), "passed": 0})
		})
	}
}

// TestCoalesceOff has no ring, or registers by which there are no updates: all passes.
func TestCoalesceOff(t *testing.T) {
	for _, registers := range []map[string]int64{
		{}, {"key": 17, "value": 1}, {"key": -1}, {"key": 2, "value": 65}, {"key": 2, "operation": 4}, {"key": 2, "entries": 1025}, {"key": 256 + 2},
	} {
		t.Run(fmt.Sprint(registers), func(t *testing.T) {
			s := coalesce(t, os.Getpagesize(), registers)
			s.send(s.dial(), []byte("key and value"))
			passes(t, s.server, []byte("key and value"))
			s.flush()
			s.wantNothing()
			s.wantRegisters(map[string]int64{"updates": 0, "passed": 0, "malformed": 0})
		})
	}
	t.Run("without a ring", func(t *testing.T) {
		server, client := pair(t)
		k := create(t, open(t, serve(t)), "coalesce")
		if err := k.Write(map[string]int64{"key": 2, "value": 8}); err != nil {
			t.Fatal(err)
		}
		if err := k.Attach(server); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		passes(t, server, []byte("abc"))
	})
}

// TestCoalesceForms writes the registers while keys are there: what is in a batch has the same form, and each batch says which.
func TestCoalesceForms(t *testing.T) {
	s := coalesce(t, 1<<14, map[string]int64{"key": 2, "value": 8})
	client := s.dial()
	s.send(client, []byte("ab1"))
	s.awaitAll(1)
	if err := s.k.Write(map[string]int64{"key": 3}); err != nil {
		t.Fatal(err)
	}
	s.send(client, []byte("ab12"))
	s.awaitAll(2)
	s.awaitRegister("batches", 1)
	s.want(1, entry{"ab", "1"})
	s.key = 3
	if err := s.k.Write(map[string]int64{"operation": coalesceSum}); err != nil {
		t.Fatal(err)
	}
	s.send(client, []byte("ab1"+number(5)))
	s.send(client, []byte("ab1"+number(6)))
	s.awaitAll(4)
	s.awaitRegister("batches", 2)
	s.want(1, entry{"ab1", "2"})
	s.flush()
	s.want(2, entry{"ab1", number(11)})
}

// TestCoalesceSockets has a socket of IPv4 and one of IPv6: their updates meet in one table. It stays when they are detached.
func TestCoalesceSockets(t *testing.T) {
	s := coalesce(t, 1<<14, map[string]int64{"key": 1, "operation": coalesceSum})
	server, client := pairBy(t, net.IPv6loopback)
	if err := s.k.Attach(server); err != nil {
		t.Fatal(err)
	}
	clients := []*net.UDPConn{s.dial(), client}
	for i, client := range clients {
		s.send(client, []byte("a"+number(1<<i)))
		s.send(client, []byte(string(rune('x'+i))+number(9)))
	}
	s.awaitAll(4)
	for i, server := range []*net.UDPConn{s.server, server} {
		if err := s.k.Detach(server); err != nil {
			t.Fatal(err)
		}
		s.send(clients[i], []byte("a"+number(100)))
		passes(t, server, []byte("a"+number(100)))
	}
	s.flush()
	s.want(4, entry{"a", number(3)}, entry{"x", number(9)}, entry{"y", number(9)})
	s.wantNothing()
}

// TestCoalesceNotes delivers notes that ask for nothing.
func TestCoalesceNotes(t *testing.T) {
	s := coalesce(t, 1<<14, map[string]int64{"key": 1, "value": 1})
	s.send(s.dial(), []byte("ab"))
	s.awaitAll(1)
	for _, note := range [][]byte{{}, {1, 0, 0}, {0, 0, 0, 0}, {2, 0, 0, 0}} {
		b, err := s.notes.Reserve(len(note))
		if err != nil {
			t.Fatal(err)
		}
		copy(b, note)
		if _, err := s.notes.Deliver(); err != nil {
			t.Fatal(err)
		}
		s.wantNothing()
	}
	s.flush()
	s.want(1, entry{"a", "b"})
}

// FuzzParseBatch reads any bytes: a batch yields as many keys as it says, or is refused.
func FuzzParseBatch(f *testing.F) {
	f.Add([]byte{})
	whole := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint64(nil, 3), 2)
	whole = binary.NativeEndian.AppendUint16(binary.NativeEndian.AppendUint16(whole, 2), 8)
	f.Add(append(whole, make([]byte, 64)...))
	f.Add(append(whole, bytes.Repeat([]byte{1}, 64)...))
	f.Fuzz(func(t *testing.T, message []byte) {
		b, err := lambdanic.ParseBatch(message)
		if err != nil {
			return
		}
		n := 0
		for range b.All() {
			n++
		}
		if n != b.Len || n > len(message) {
			t.Errorf("%d bytes yield %d keys of %d", len(message), n, b.Len)
		}
	})
}

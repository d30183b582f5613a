package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// A parityGroup is what was read of a group.
type parityGroup struct {
	shards []lambdanic.Shard
	parity lambdanic.Shard
}

// collect reads all that is in the rings, but for those of them that are lost.
func (s *steered) collect(lost ...int) map[uint64]*parityGroup {
	s.t.Helper()
	groups := map[uint64]*parityGroup{}
	for i, ring := range s.rings {
		for !slices.Contains(lost, i) {
			m, ok := ring.Poll()
			if !ok {
				break
			}
			shard, err := lambdanic.ParseShard(bytes.Clone(m.Data))
			if err != nil {
				s.t.Fatal(err)
			}
			g := groups[shard.Group]
			if g == nil {
				g = &parityGroup{}
				groups[shard.Group] = g
			}
			if isParity := shard.Count != 0; isParity != (i == len(s.rings)-1) || !isParity && shard.Index != i {
				s.t.Fatalf("ring %d has shard %d of group %d, a parity of %d", i, shard.Index, shard.Group, shard.Count)
			}
			if shard.Count != 0 {
				g.parity = shard
			} else {
				g.shards = append(g.shards, shard)
			}
		}
	}
	return groups
}

// flush ends all groups.
func flush(t *testing.T, k *lambdanic.Ikernel) {
	t.Helper()
	notes, err := k.OpenNotes()
	if err != nil {
		t.Fatal(err)
	}
	b, err := notes.Reserve(4)
	if err != nil {
		t.Fatal(err)
	}
	binary.NativeEndian.PutUint32(b, 1)
	if _, err := notes.Deliver(); err != nil {
		t.Fatal(err)
	}
}

// awaitRegister waits until the ikernel has counted so many.
func (s *steered) awaitRegister(name string, want int64) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r, err := s.k.Read()
		if err != nil {
			s.t.Fatal(err)
		}
		if r[name] == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the registers are %v, want %s=%d", r, name, want)
		}
	}
}

// xor is the oracle: what datagrams XOR to, with zeros behind each.
func xor(shards []lambdanic.Shard) (all []byte) {
	for _, s := range shards {
		all = append(all, make([]byte, max(0, len(s.Data)-len(all)))...)
		for i, b := range s.Data {
			all[i] ^= b
		}
	}
	return all
}

// check compares a group with the oracle, and rebuilds each of its datagrams from the others.
func (g *parityGroup) check(t *testing.T, shards int) {
	t.Helper()
	if g.parity.Count != len(g.shards) || g.parity.Count > shards {
		t.Fatalf("a group has %d datagrams and a parity of %d, with %d to a group", len(g.shards), g.parity.Count, shards)
	}
	if want := xor(g.shards); !bytes.Equal(g.parity.Data, want) {
		t.Fatalf("the parity is %x, want %x", g.parity.Data, want)
	}
	for i, lost := range g.shards {
		got, err := g.parity.Rebuild(slices.Delete(slices.Clone(g.shards), i, i+1))
		if err != nil || got.Index != lost.Index || !bytes.Equal(got.Data, lost.Data) {
			t.Fatalf("got shard %d, %x, %v; want shard %d, %x", got.Index, got.Data, err, lost.Index, lost.Data)
		}
	}
}

// parityMessage is the n-th datagram of a sender: no other is the same, and its length is any that fits.
func parityMessage(sender int, n uint32) []byte {
	rnd := rand.New(rand.NewPCG(uint64(sender), uint64(n)))
	m := make([]byte, 5+rnd.IntN(1472-4))
	for i := range m {
		m[i] = byte(rnd.Uint32())
	}
	m[0] = byte(sender)
	binary.BigEndian.PutUint32(m[1:], n)
	return m
}

// TestParity sends datagrams of random lengths from several CPUs at once: each is in a group, whose parity rebuilds each.
func TestParity(t *testing.T) {
	const senders, messages = 2, 500
	for _, shards := range []int{2, 3, 5, 16} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			s := steer(t, "parity", lambdanic.Rings{Count: shards + 1, Size: 1 << 21}, map[string]int64{"shards": int64(shards)})
			var all sync.WaitGroup
			for i := range senders {
				client := s.dial()
				all.Go(func() {
					isolated.Pin(t, i)
					for n := range uint32(messages) {
						_, _ = client.Write(parityMessage(i, n))
					}
				})
			}
			all.Wait()
			s.awaitRegister("messages", senders*messages)
			flush(t, s.k)
			seen := map[string]bool{}
			groups := s.collect()
			for _, g := range groups {
				g.check(t, shards)
				for _, shard := range g.shards {
					seen[string(shard.Data)] = true
				}
			}
			for i := range senders {
				for n := range uint32(messages) {
					if !seen[string(parityMessage(i, n))] {
						t.Fatalf("datagram %d of sender %d has no copy", n, i)
					}
				}
			}
			if len(seen) != senders*messages {
				t.Errorf("%d datagrams have copies, of %d", len(seen), senders*messages)
			}
			s.awaitRegister("groups", int64(len(groups)))
		})
	}
}

// TestParityEdges has datagrams that are empty, of all lengths about a word's, of the greatest length, and too long.
func TestParityEdges(t *testing.T) {
	s := steer(t, "parity", lambdanic.Rings{Count: 3, Size: 1 << 20}, map[string]int64{"shards": 2})
	client, fit := s.dial(), int64(0)
	for _, n := range []int{0, 0, 1, 0, 7, 8, 9, 15, 16, 17, 1471, 1472, 1472, 1, 1473, 9000, 3} {
		s.send(client, bytes.Repeat([]byte{byte(n) | 0x80}, n))
		if n <= 1472 {
			fit++
		}
	}
	s.awaitRegister("messages", fit)
	s.awaitRegister("unfit", 2)
	flush(t, s.k)
	n := 0
	for _, g := range s.collect() {
		g.check(t, 2)
		n += len(g.shards)
	}
	if n != int(fit) {
		t.Errorf("%d datagrams have copies, want %d", n, fit)
	}
}

// TestParityFull has a ring that nobody reads: what it has no room for is rebuilt from the others. The socket gets all.
func TestParityFull(t *testing.T) {
	const shards, groups = 3, 40
	s := steer(t, "parity", lambdanic.Rings{Count: shards + 1, Size: os.Getpagesize()}, map[string]int64{"shards": shards})
	isolated.Pin(t, 0)
	client, room := s.dial(), (os.Getpagesize()-8)/(8+48+16+100)
	b := make([]byte, 200)
	for n := range byte(groups) {
		for i := range byte(shards) {
			want := bytes.Repeat([]byte{n, i}, 50)
			s.send(client, want)
			_ = s.server.SetReadDeadline(time.Now().Add(patience))
			if got, err := s.server.Read(b); err != nil || !bytes.Equal(b[:got], want) {
				t.Fatalf("the socket gets %x, %v; want %x", b[:got], err, want)
			}
		}
		s.awaitRegister("groups", int64(n)+1)
		for _, g := range s.collect(1) {
			got, err := g.parity.Rebuild(g.shards)
			if want := bytes.Repeat([]byte{n, 1}, 50); err != nil || got.Index != 1 || !bytes.Equal(got.Data, want) {
				t.Fatalf("got shard %d, %x, %v; want %x", got.Index, got.Data, err, want)
			}
		}
	}
	counts, err := s.k.RingCounts()
	if err != nil || counts[1].Posted != uint64(room) || counts[1].Refused != uint64(groups-room) {
		t.Errorf("the rings count %+v, %v, want %d posted and the rest refused in the second", counts, err, room)
	}
}

// TestParityWithoutRings has too few rings, or a number of shards that cannot be: the datagrams pass.
func TestParityWithoutRings(t *testing.T) {
	for _, shards := range []int64{-1, 0, 1, 3, 17} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			s := steer(t, "parity", lambdanic.Rings{Count: 3, Size: os.Getpagesize()}, map[string]int64{"shards": shards})
			s.send(s.dial(), []byte("x"))
			_ = s.server.SetReadDeadline(time.Now().Add(patience))
			if n, err := s.server.Read(make([]byte, 10)); n != 1 || err != nil {
				t.Errorf("the socket gets %d bytes, %v", n, err)
			}
			if r, err := s.k.Read(); err != nil || r["messages"] != 0 {
				t.Errorf("the registers are %v, %v", r, err)
			}
		})
	}
}

// TestRebuildRefuses has what no datagram can be rebuilt from.
func TestRebuildRefuses(t *testing.T) {
	parity := lambdanic.Shard{Group: 1, Index: 3, Count: 3, Data: []byte{7}}
	a, b := lambdanic.Shard{Group: 1, Data: []byte{1}}, lambdanic.Shard{Group: 1, Index: 1, Data: []byte{2}}
	for name, others := range map[string][]lambdanic.Shard{
		"two are missing": {a}, "one is there twice": {a, a}, "another group": {a, {Group: 2, Index: 1}},
		"none is missing": {a, b, {Group: 1, Index: 2}}, "no datagram": {a, parity}, "longer": {a, {Group: 1, Index: 1, Data: []byte{1, 2}}},
		"no such datagram": {a, {Group: 1, Index: 3}},
	} {
		if got, err := parity.Rebuild(others); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if _, err := a.Rebuild(nil); err == nil {
		t.Error("a datagram rebuilds another")
	}
	for _, n := range []int{0, 15, 17} {
		if _, err := lambdanic.ParseShard(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are a shard", n)
		}
	}
}

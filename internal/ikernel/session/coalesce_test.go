package session

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// Operations of coalesce.
const (
	coalesceLast = iota
	coalesceSum
	coalesceMax
	coalesceMin
)

// A coalesced server has coalesce in front of its sockets.
type coalesced struct {
	*steered
	notes *lambdanic.Notes
	key   int
}

func coalesce(t testing.TB, size int, registers map[string]int64) *coalesced {
	t.Helper()
	s := &coalesced{steered: steer(t, "coalesce", lambdanic.Rings{Count: 1, Size: size}, registers), key: int(registers["key"])}
	var err error
	if s.notes, err = s.k.OpenNotes(); err != nil {
		t.Fatal(err)
	}
	return s
}

// An entry is what a batch has of a key.
type entry struct{ key, value string }

// flush asks for all that is there.
func (s *coalesced) flush() {
	s.t.Helper()
	b, err := s.notes.Reserve(4)
	if err != nil {
		s.t.Fatal(err)
	}
	binary.NativeEndian.PutUint32(b, 1)
	if n, err := s.notes.Deliver(); n != 1 || err != nil {
		s.t.Fatalf("%d notes are delivered, %v", n, err)
	}
}

// parse reads a batch, whose keys have to be in order, each once. Of the message nothing else is left.
func (s *coalesced) parse(message []byte) (entries []entry, updates uint64) {
	s.t.Helper()
	b, err := lambdanic.ParseBatch(message)
	if err != nil {
		s.t.Fatal(err)
	}
	for key, value := range b.All() {
		e := entry{string(key), string(value)}
		if n := len(entries); len(key) != s.key || n > 0 && entries[n-1].key >= e.key {
			s.t.Fatalf("the keys are %q, and then %q", entries, e.key)
		}
		entries = append(entries, e)
	}
	if len(entries) != b.Len || b.Len == 0 || b.Updates < uint64(b.Len) {
		s.t.Fatalf("a batch of %d updates has %d keys, and yields %d", b.Updates, b.Len, len(entries))
	}
	return entries, b.Updates
}

// poll reads a batch that is there.
func (s *coalesced) poll() (entries []entry, updates uint64, ok bool) {
	s.t.Helper()
	m, ok := s.rings[0].Poll()
	if !ok {
		return nil, 0, false
	}
	entries, updates = s.parse(m.Data)
	return entries, updates, true
}

// registers reads all registers, which have to agree with each other at any moment.
func (s *coalesced) registers() map[string]int64 {
	s.t.Helper()
	r, err := s.k.Read()
	if err != nil {
		s.t.Fatal(err)
	}
	if left := r["updates"] - r["coalesced"] - r["posted"]; left < 0 || left > 2*1024 {
		s.t.Fatalf("the registers are %v: %d keys are not yet posted", r, left)
	}
	return r
}

// awaitAll waits until the ikernel has got so many messages.
func (s *coalesced) awaitAll(want int64) map[string]int64 {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		r := s.registers()
		if r["updates"]+r["passed"]+r["malformed"] == want {
			return r
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the registers are %v after %d messages", r, want)
		}
	}
}

func (s *coalesced) wantRegisters(want map[string]int64) {
	s.t.Helper()
	r := s.registers()
	for name, v := range want {
		if r[name] != v {
			s.t.Errorf("register %s is %d, want %d: %v", name, r[name], v, r)
		}
	}
}

// want reads a batch that is there, and compares it.
func (s *coalesced) want(updates uint64, want ...entry) {
	s.t.Helper()
	got, n, ok := s.poll()
	if !ok || n != updates || !slices.Equal(got, want) {
		s.t.Fatalf("got %q of %d updates, %v; want %q of %d", got, n, ok, want, updates)
	}
}

func (s *coalesced) wantNothing() {
	s.t.Helper()
	if got, _, ok := s.poll(); ok {
		s.t.Fatalf("got %q", got)
	}
}

// passes reads a message from a server's socket, and compares it.
func passes(t testing.TB, server *net.UDPConn, want []byte) {
	t.Helper()
	b := make([]byte, 1000)
	_ = server.SetReadDeadline(time.Now().Add(patience))
	if n, err := server.Read(b); err != nil || !bytes.Equal(b[:n], want) {
		t.Fatalf("the socket gets %q, %v; want %q", b[:n], err, want)
	}
}

func number(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }

// A coalesceModel is what tables should have.
type coalesceModel struct {
	operation int
	most      int // keys of a table
	open      map[string]string
	updates   uint64
	full      []entry // the batch that a new key had posted
	fullOf    uint64  // its updates
}

func (m *coalesceModel) merge(key, value string) string {
	old, ok := m.open[key]
	if !ok || m.operation == coalesceLast {
		return value
	}
	a, b := binary.BigEndian.Uint64([]byte(old)), binary.BigEndian.Uint64([]byte(value))
	return number(map[int]uint64{coalesceSum: a + b, coalesceMax: max(a, b), coalesceMin: min(a, b)}[m.operation])
}

// add adds an update, and returns whether it has a batch posted.
func (m *coalesceModel) add(key, value string) bool {
	_, known := m.open[key]
	posts := !known && len(m.open) == m.most
	if posts {
		m.full, m.fullOf = m.take()
	}
	m.open[key] = m.merge(key, value)
	m.updates++
	return posts
}

// take is a flush.
func (m *coalesceModel) take() (all []entry, updates uint64) {
	for _, key := range slices.Sorted(maps.Keys(m.open)) {
		all = append(all, entry{key, m.open[key]})
	}
	updates = m.updates
	m.open, m.updates = map[string]string{}, 0
	return all, updates
}

// TestCoalesceModel compares all batches with what the same updates make of Go's maps: for each operation, with short and long keys, and tables of any size.
func TestCoalesceModel(t *testing.T) {
	for _, c := range []struct {
		operation, key, value, entries, keys, rounds int
	}{
		{coalesceLast, 1, 64, 10, 30, 600}, {coalesceLast, 8, 33, 1024, 1500, 6000}, {coalesceLast, 16, 0, 3, 5, 600}, {coalesceLast, 5, 7, 1, 3, 300},
		{coalesceSum, 9, 0, 100, 150, 2000}, {coalesceMax, 15, 1, 7, 9, 800}, {coalesceMin, 7, 8, 63, 70, 1500}, {coalesceSum, 16, 64, 0, 2000, 6000},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			isolated.Pin(t, 0)
			s := coalesce(t, 1<<18, map[string]int64{
				"key": int64(c.key), "value": int64(c.value), "operation": int64(c.operation), "entries": int64(c.entries),
			})
			rnd := rand.New(rand.NewPCG(uint64(c.operation), uint64(c.key)))
			model := &coalesceModel{operation: c.operation, most: c.entries, open: map[string]string{}}
			if c.entries == 0 {
				model.most = 1024
			}
			keys, client := coalesceKeys(rnd, c.key, c.keys), s.dial()
			sent, batches := int64(0), int64(0)
			for range c.rounds {
				key, value := keys[rnd.IntN(len(keys))], number(rnd.Uint64()>>rnd.IntN(64))
				if c.operation == coalesceLast {
					value = string(bytes.Repeat([]byte{byte(rnd.Uint32())}, rnd.IntN(c.value+1)))
				}
				s.send(client, []byte(key+value))
				sent++
				if model.add(key, value) {
					s.awaitAll(sent)
					s.awaitRegister("batches", batches+1)
					s.want(model.fullOf, model.full...)
					batches++
				}
				if rnd.IntN(300) == 0 {
					s.awaitAll(sent)
					s.flush()
					all, updates := model.take()
					s.want(updates, all...)
					batches++
				}
			}
			s.awaitAll(sent)
			s.wantNothing()
			s.wantRegisters(map[string]int64{"updates": sent, "passed": 0, "malformed": 0, "batches": batches})
		})
	}
}

// coalesceKeys are different keys, in which any byte may be, and of which many have a common beginning.
func coalesceKeys(rnd *rand.Rand, length, n int) (keys []string) {
	seen := map[string]bool{}
	for len(keys) < n && (length > 1 || len(keys) < 256) {
		key := bytes.Repeat([]byte{byte(rnd.IntN(2) * 255)}, length)
		for i := rnd.IntN(length); i < length; i++ {
			key[i] = byte(rnd.Uint32())
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			keys = append(keys, string(key))
		}
	}
	return keys
}

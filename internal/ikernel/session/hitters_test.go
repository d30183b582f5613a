package session

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// The sketch of heavy-hitters, and what a note asks for.
const (
	hittersTop     = 64
	hittersRows    = 4
	hittersColumns = 8192
	report, forget = 1, 2
)

// A hitter is a key that heavy-hitters reports.
type hitter struct {
	Estimate uint64
	Len, _   uint32
	Key      [64]byte
}

type hitters struct {
	Count uint64
	Keys  [hittersTop]hitter
}

// A sketch is what heavy-hitters should count.
type sketch struct {
	seed     uint64
	counters [hittersRows][hittersColumns]uint64
	exact    map[string]uint64
	count    uint64
}

func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// of yields a key's counters.
func (s *sketch) of(key string) (all [hittersRows]*uint64) {
	h := mix(s.seed ^ uint64(len(key)))
	var padded [64]byte
	copy(padded[:], key)
	for i := 0; i < len(key); i += 8 {
		h = mix(h ^ binary.NativeEndian.Uint64(padded[i:]))
	}
	for row := range all {
		all[row] = &s.counters[row][h>>(13*row)%hittersColumns]
	}
	return all
}

func (s *sketch) add(key string) {
	for _, c := range s.of(key) {
		*c++
	}
	s.exact[key]++
	s.count++
}

func (s *sketch) estimate(key string) uint64 {
	least := uint64(math.MaxUint64)
	for _, c := range s.of(key) {
		least = min(least, *c)
	}
	return least
}

// A reporter asks heavy-hitters.
type reporter struct {
	t     *testing.T
	ring  *lambdanic.Ring
	notes *lambdanic.Notes
}

func newReporter(t *testing.T, k *lambdanic.Ikernel, ring *lambdanic.Ring) *reporter {
	t.Helper()
	notes, err := k.OpenNotes()
	if err != nil {
		t.Fatal(err)
	}
	return &reporter{t, ring, notes}
}

// tell has a note delivered.
func (r *reporter) tell(what uint32) {
	r.t.Helper()
	b, err := r.notes.Reserve(4)
	if err != nil {
		r.t.Fatal(err)
	}
	binary.NativeEndian.PutUint32(b, what)
	if n, err := r.notes.Deliver(); n != 1 || err != nil {
		r.t.Fatalf("%d notes are delivered, %v", n, err)
	}
}

// ask returns a report, which is in the ring when its note is delivered.
func (r *reporter) ask(what uint32) (h hitters) {
	r.t.Helper()
	r.tell(what)
	m, ok := r.ring.Poll()
	if !ok {
		r.t.Fatal("there is no report")
	}
	if n, err := binary.Decode(m.Data, binary.NativeEndian, &h); n != len(m.Data) || err != nil {
		r.t.Fatalf("the report has %d bytes: %v", len(m.Data), err)
	}
	return h
}

// settle waits until as many messages are counted, and returns the report.
func (r *reporter) settle(count uint64) hitters {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		h := r.ask(report)
		if h.Count == count {
			return h
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d messages are counted of %d", h.Count, count)
		}
	}
}

// check compares a report with what is right: the keys that have the greatest estimates, each within its bound.
func (s *sketch) check(t *testing.T, h hitters) {
	t.Helper()
	var want, got []uint64
	for key := range s.exact {
		want = append(want, s.estimate(key))
	}
	slices.SortFunc(want, func(a, b uint64) int { return cmp.Compare(b, a) })
	want = want[:min(len(want), hittersTop)]
	reported := map[string]bool{}
	bound := uint64(math.E / hittersColumns * float64(s.count))
	for _, k := range h.Keys {
		if k.Estimate == 0 {
			continue
		}
		got = append(got, k.Estimate)
		key := string(k.Key[:k.Len])
		exact := s.exact[key]
		if reported[key] || exact == 0 || k.Estimate != s.estimate(key) || k.Estimate < exact || k.Estimate > exact+bound {
			t.Errorf("key %x has the estimate %d, want %d, from %d to %d", key, k.Estimate, s.estimate(key), exact, exact+bound)
		}
		if !bytes.Equal(k.Key[k.Len:], make([]byte, 64-k.Len)) {
			t.Errorf("key %x has %x behind it", key, k.Key[k.Len:])
		}
		reported[key] = true
	}
	slices.SortFunc(got, func(a, b uint64) int { return cmp.Compare(b, a) })
	if !slices.Equal(got, want) || h.Count != s.count {
		t.Errorf("of %d messages, the greatest estimates are %v, want %v", h.Count, got, want)
	}
	for key, n := range s.exact {
		if n*62 > s.count && !reported[key] {
			t.Errorf("key %x is missing, which %d of %d messages have", key, n, s.count)
		}
	}
}

// TestHitters sends keys by Zipf's law from several CPUs at once, and compares the reports with the same in Go, and with exact counts. Then it begins anew.
func TestHitters(t *testing.T) {
	const senders, batches, batch, offset, keys = 2, 60, 80, 3, 20000
	for _, length := range []int{3, 8, 13, 64} {
		t.Run(fmt.Sprintf("keys of %d bytes", length), func(t *testing.T) {
			const seed = 77
			s := steer(t, "heavy-hitters", lambdanic.Rings{Count: 1, Size: 1 << 16},
				map[string]int64{"offset": offset, "length": int64(length), "seed": seed})
			r := newReporter(t, s.k, s.rings[0])
			want := &sketch{seed: seed, exact: map[string]uint64{}}
			name := func(i uint64) string {
				return string(binary.BigEndian.AppendUint64(bytes.Repeat([]byte{'k'}, max(0, length-8)), i)[max(0, 8-length):])
			}
			var work [senders]chan []string
			var done sync.WaitGroup
			for i := range work {
				work[i] = make(chan []string)
				client := s.dial()
				go func() {
					isolated.Pin(t, i)
					for names := range work[i] {
						for _, n := range names {
							_, _ = client.Write([]byte("abc" + n + "behind"))
						}
						done.Done()
					}
				}()
			}
			law := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(length))), 1.1, 1, keys)
			for range batches {
				done.Add(senders)
				for i := range work {
					names := make([]string, batch)
					for j := range names {
						names[j] = name(law.Uint64())
						want.add(names[j])
					}
					work[i] <- names
				}
				done.Wait()
				want.check(t, r.settle(want.count))
				if t.Failed() {
					return
				}
			}
			for i := range work {
				close(work[i])
			}
			want.check(t, r.ask(forget))
			client := s.dial()
			again := &sketch{seed: seed, exact: map[string]uint64{}}
			again.check(t, r.ask(report))
			s.send(client, []byte("abc"+name(1)[1:])) // not a whole key
			for i := range uint64(9) {
				again.add(name(i % 4))
				s.send(client, []byte("abc"+name(i%4)))
			}
			again.check(t, r.settle(9))
		})
	}
}

// TestHittersAddresses counts the messages of more senders than are reported.
func TestHittersAddresses(t *testing.T) {
	const senders = 100
	s := steer(t, "heavy-hitters", lambdanic.Rings{Count: 1, Size: 1 << 16}, nil)
	r := newReporter(t, s.k, s.rings[0])
	want := &sketch{exact: map[string]uint64{}}
	for i := range senders {
		from := net.IPv4(127, 1, 0, byte(i)).To4()
		client := s.from(from)
		for range 1 + i%7*i%13 {
			s.send(client, []byte("x"))
			want.add(string(from))
		}
	}
	want.check(t, r.settle(want.count))
	server, client := pairBy(t, net.IPv6loopback)
	if err := s.k.Attach(server); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s.send(client, nil)
		want.add(string(net.IPv6loopback))
	}
	want.check(t, r.settle(want.count))
}

// TestHittersRefused has no room for a report. Nothing is forgotten then; nor does what is no question get an answer.
func TestHittersRefused(t *testing.T) {
	s := steer(t, "heavy-hitters", lambdanic.Rings{Count: 1, Size: max(8192, os.Getpagesize())}, nil)
	r := newReporter(t, s.k, s.rings[0])
	s.send(s.dial(), []byte("x"))
	r.settle(1)
	s.rings[0].Release()
	refused := func() uint64 {
		counts, err := s.k.RingCounts()
		if err != nil {
			t.Fatal(err)
		}
		return counts[0].Refused
	}
	for refused() == 0 {
		r.tell(report)
	}
	if r.tell(forget); refused() != 2 {
		t.Errorf("%d reports are refused, want 2", refused())
	}
	for _, ok := s.rings[0].Poll(); ok; _, ok = s.rings[0].Poll() {
	}
	r.tell(0)
	r.tell(3)
	if m, ok := s.rings[0].Poll(); ok {
		t.Errorf("got %d bytes for what is no question", len(m.Data))
	}
	if h := r.ask(report); h.Count != 1 {
		t.Errorf("%d messages are counted, want 1", h.Count)
	}
}

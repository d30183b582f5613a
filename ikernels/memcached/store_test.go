package memcached

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

// find is what the NIC program does (mc_find in get.bpf.c): the item of a key, or nil.
func (s *store) find(key string, hash uint64) *GetMcItem {
	bucket := s.bucket(hash)
	for i := range bucket {
		e := bucket[i].Load()
		if e>>32 != hash>>32 || uint32(e) == 0 {
			continue
		}
		item := s.item(uint32(e))
		at := int(GetMcCacheLimitMC_ITEM_KEY)
		if item.Hash == hash && int(item.KeyLen) == len(key) && string(item.Bytes[at:at+len(key)]) == key {
			return item
		}
	}
	return nil
}

// reuse is what the worker does after a grace period.
func (s *store) reuse() { s.free, s.emptied = append(s.free, s.emptied...), nil }

// emptyStore makes a store whose items are current unless their guard's word is 0.
func emptyStore(buckets, segments int) *store {
	return newStore(make([]atomic.Uint64, buckets*int(ways)), make([]byte, segments*int(segmentSize)), make(sketch, 1<<15),
		func(i *GetMcItem) bool { return i.Guard != 0 })
}

// TestStore puts random values into a small store, many times what it holds, and compares with a map. Nothing else may ever be found for a key than what was put
// last, and of the latest values nearly all must be found.
func TestStore(t *testing.T) {
	const segments, buckets, last = 8, 1 << 13, 1000
	s := emptyStore(buckets, segments)
	r := rand.New(rand.NewPCG(19, 19))
	o := &observed{secret: 1}
	want := map[string]value{}
	var order []string
	for n := range 60000 {
		v := value{key: fmt.Appendf(nil, "%d", r.IntN(20000)), data: make([]byte, r.IntN(300)), flags: r.Uint32(), version: r.Uint64()}
		if r.IntN(50) == 0 {
			v.key = append(v.key, strings.Repeat("k", 250-len(v.key))...)
			v.data = make([]byte, 850)
		}
		for i := range v.data {
			v.data[i] = byte(n + i)
		}
		if !s.put(v, stamp{hash: o.hash(v.key), guard: uint64(n), all: 7, expires: uint64(n+1) << expiresShift}) {
			t.Fatalf("put %d: there is no memory", n)
		}
		if s.clean() {
			s.reuse()
		}
		want[string(v.key)] = v
		order = append(order, string(v.key))
		if n%5000 == 0 {
			checkStore(t, s, o, want)
		}
	}
	if found := checkStore(t, s, o, want); found >= len(want) || found < last {
		t.Errorf("found %d of %d values", found, len(want))
	}
	missing := 0
	for _, key := range order[len(order)-last:] {
		if s.find(key, o.hash([]byte(key))) == nil {
			missing++
		}
	}
	if missing > last/100 {
		t.Errorf("%d of the last %d values are missing", missing, last)
	}
}

// checkStore compares all that is found, and returns how much that is.
func checkStore(t *testing.T, s *store, o *observed, want map[string]value) (found int) {
	t.Helper()
	for key, v := range want {
		item := s.find(key, o.hash([]byte(key)))
		if item == nil {
			continue
		}
		found++
		head := fmt.Sprintf("VALUE %s %d %d", key, v.flags, len(v.data))
		got := item.Bytes[:item.HeadLen+item.TailLen]
		if !bytes.Equal(got, append([]byte(head+"\r\n"), string(v.data)+"\r\n"...)) || int(item.HeadLen) != len(head) {
			t.Fatalf("%q is %q, want %q", key, got, head)
		}
		if cas := string(item.Bytes[item.HeadLen+item.TailLen:][:item.CasLen]); cas != fmt.Sprintf(" %d", v.version) {
			t.Fatalf("%q has version %q, want %d", key, cas, v.version)
		}
		if item.All != 7 || item.Expires != uint32(item.Guard)+1 {
			t.Fatalf("%q has the stamp of another value: %+v", key, item)
		}
	}
	return found
}

// TestDeadFirst puts items that may not be answered between others, a segment of each in turn. None of the others may be forgotten while the memory
// suffices.
func TestDeadFirst(t *testing.T) {
	const living, block = 4, int(segmentSize) / itemUsual
	s := emptyStore(1<<15, 2*living)
	o := &observed{secret: 1}
	put := func(key string, guard uint64) {
		t.Helper()
		if !s.put(value{key: []byte(key)}, stamp{hash: o.hash([]byte(key)), guard: guard}) {
			t.Fatalf("%s: there is no memory", key)
		}
		if s.clean() {
			s.reuse()
		}
	}
	for n := range 5 * living {
		for i := range block {
			put(fmt.Sprintf("dead %d", n*block+i), 0)
		}
		for i := range block {
			if n < living {
				put(fmt.Sprint(n*block+i), 1)
			}
		}
	}
	for i := range living * block {
		if key := fmt.Sprint(i); s.find(key, o.hash([]byte(key))) == nil {
			t.Fatalf("%s is forgotten", key)
		}
	}
	if s.threshold() != 0 {
		t.Errorf("only keys that are asked for more than %d times would be fetched", s.threshold())
	}
}

// TestCrowded puts one item more than a bucket has entries.
func TestCrowded(t *testing.T) {
	for _, tt := range []struct {
		name      string
		displaced uint64
		guard     uint64 // of this one
	}{{"what may not be answered", 3, 0}, {"what is asked for least", 5, 1}} {
		s := emptyStore(1, 3)
		for i := range uint64(ways) + 1 {
			st := stamp{hash: i<<32 | i<<40, guard: 1}
			if i == tt.displaced {
				st.guard = tt.guard
			}
			if i != tt.displaced || tt.guard == 0 {
				s.sketch.count(st.hash)
			}
			s.put(value{key: fmt.Append(nil, i)}, st)
		}
		for i := range uint64(ways) + 1 {
			if there := s.find(fmt.Sprint(i), i<<32|i<<40) != nil; there == (i == tt.displaced) {
				t.Errorf("%s is displaced: key %d is there: %v, want %v", tt.name, i, there, !there)
			}
		}
	}
}

// TestTooLarge puts values of about the largest size that a reply holds.
func TestTooLarge(t *testing.T) {
	s := emptyStore(1, 3)
	for size := range 1400 {
		v := value{key: []byte("key"), data: make([]byte, size)}
		reply := fmt.Sprintf("VALUE key 0 %d 0\r\n%s\r\nEND\r\n", size, v.data)
		if kept, want := s.put(v, stamp{hash: 1}), 8+len(reply) <= 1400; kept != want {
			t.Fatalf("a reply of %d bytes: kept %v, want %v", 8+len(reply), kept, want)
		}
		if s.clean() {
			s.reuse()
		}
	}
}

// TestNoMemory fills a store whose segments are still being read.
func TestNoMemory(t *testing.T) {
	s := emptyStore(1<<12, 3)
	n := uint64(1)
	for ; s.put(value{key: []byte("key"), data: make([]byte, 1000)}, stamp{hash: n << 32}); n++ {
		s.clean()
		if n > 10000 {
			t.Fatal("there is memory without end")
		}
	}
	s.reuse()
	if !s.put(value{key: []byte("key")}, stamp{hash: n}) {
		t.Error("there is no memory after the grace period")
	}
}

package memcached

import (
	"math/bits"
	"strconv"
	"sync/atomic"
	"unsafe"
)

// The layout of the cache (cache.h).
const (
	ways        = uint32(GetMcCacheLimitMC_WAYS)
	cellSize    = uint32(GetMcCacheLimitMC_CELL)
	segmentSize = uint32(GetMcCacheLimitMC_SEGMENT)
	headerSize  = uint32(GetMcCacheLimitMC_ITEM_HEADER)
	itemMax     = uint32(GetMcCacheLimitMC_ITEM_MAX)
)

// A value is a key's value as the server has sent it.
type value struct {
	key     []byte
	data    []byte
	flags   uint32
	version uint64 // the server's, "cas unique"
}

// A stamp says until when a value is current: while two guards are as they were, and until a moment.
type stamp struct {
	hash       uint64 // of the key
	guard, all uint64 // words of the guards
	expires    uint64 // CLOCK_MONOTONIC, in ns; 0: never
}

// A store writes the cache's memory, which NIC programs read at the same time (cache.h). It fills one segment after the other; the oldest
// is emptied, and used again after a grace period. One goroutine uses it.
type store struct {
	index    []atomic.Uint64 // ways of bucket 0, of bucket 1, and so on
	memory   []byte
	segments []uint32 // in the order in which they were filled; the last one is being filled
	at       uint32   // where in it the next item begins
	used     []uint32 // bytes of each segment that have items
	free     []uint32 // segments
	emptied  []uint32 // segments that programs may still read
}

// newStore begins a store in memory that is all zero.
func newStore(index []atomic.Uint64, memory []byte) *store {
	s := &store{index: index, memory: memory}
	n := uint32(len(memory)) / segmentSize
	s.used = make([]uint32, n)
	for i := range n {
		s.free = append(s.free, n-1-i)
	}
	s.next()
	return s
}

// head and tail are a reply's part for the value; cas comes between them in the reply to gets.
func (v value) head() []byte {
	b := append(append(make([]byte, 0, 300), "VALUE "...), v.key...)
	b = strconv.AppendUint(append(b, ' '), uint64(v.flags), 10)
	return strconv.AppendInt(append(b, ' '), int64(len(v.data)), 10)
}

func (v value) tail() []byte {
	return append(append(append(make([]byte, 0, len(v.data)+4), "\r\n"...), v.data...), "\r\n"...)
}

func (v value) cas() []byte { return strconv.AppendUint([]byte(" "), v.version, 10) }

// put keeps a value. It returns false if no memory is free now, or no reply has room for the value.
func (s *store) put(v value, st stamp) bool {
	head, cas, tail := v.head(), v.cas(), v.tail()
	reply := len(head) + len(cas) + len(tail) + int(GetMcGetLimitMC_FRAME+GetMcGetLimitMC_END)
	if reply > int(GetMcGetLimitMC_DATAGRAM) || !s.room() {
		return false
	}
	segment := s.segments[len(s.segments)-1]
	cell := (segment*segmentSize + s.at) / cellSize
	i := s.item(cell)
	i.Hash, i.Guard, i.All, i.Expires = st.hash, st.guard, st.all, st.expires
	i.KeyLen = uint8(len(v.key))
	i.HeadLen = uint16(copy(i.Bytes[:], head))
	i.TailLen = uint16(copy(i.Bytes[i.HeadLen:], tail))
	i.CasLen = uint8(copy(i.Cas[:], cas))
	s.at += i.cells() * cellSize
	s.used[segment] = s.at
	s.place(st.hash).Store(entry(st.hash, cell))
	return true
}

// cells is how many cells an item fills.
func (i *GetMcItem) cells() uint32 {
	return (headerSize + uint32(i.HeadLen) + uint32(i.TailLen) + cellSize - 1) / cellSize
}

// room makes sure that the segment at hand has room for any item.
func (s *store) room() bool { return s.at <= segmentSize-itemMax || s.next() }

// next begins to fill the next segment.
func (s *store) next() bool {
	if len(s.free) == 0 {
		return false
	}
	n := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.segments = append(s.segments, n)
	s.at = first(n)
	s.used[n] = s.at
	return true
}

// empty forgets the values of the oldest segments, so that some are always free or soon will be. It says whether any wait for a grace period.
func (s *store) empty() bool {
	for reserve := 1 + len(s.used)/16; len(s.segments) > 1 && len(s.free)+len(s.emptied) < reserve; {
		n := s.segments[0]
		s.segments = s.segments[1:]
		begin := n * segmentSize
		for cell := (begin + first(n)) / cellSize; cell < (begin+s.used[n])/cellSize; cell += s.item(cell).cells() {
			if e := s.entryOf(s.item(cell).Hash, cell); e != nil {
				e.Store(0)
			}
		}
		s.emptied = append(s.emptied, n)
	}
	return len(s.emptied) > 0
}

// first is where in a segment the first item begins. Cell 0 has none: an entry of 0 names no item.
func first(segment uint32) uint32 {
	if segment == 0 {
		return cellSize
	}
	return 0
}

func (s *store) item(cell uint32) *GetMcItem {
	return (*GetMcItem)(unsafe.Pointer(&s.memory[uint64(cell)*uint64(cellSize)]))
}

// entry is the index's entry of an item.
func entry(hash uint64, cell uint32) uint64 { return hash>>32<<32 | uint64(cell) }

func (s *store) bucket(hash uint64) []atomic.Uint64 {
	n := hash & uint64(len(s.index)/int(ways)-1) * uint64(ways)
	return s.index[n : n+uint64(ways)]
}

// entryOf is the entry that names an item, or nil.
func (s *store) entryOf(hash uint64, cell uint32) *atomic.Uint64 {
	bucket := s.bucket(hash)
	for i := range bucket {
		if bucket[i].Load() == entry(hash, cell) {
			return &bucket[i]
		}
	}
	return nil
}

// place is the entry for a key: the one that it has, or a free one, or that of another key.
func (s *store) place(hash uint64) *atomic.Uint64 {
	bucket := s.bucket(hash)
	var free *atomic.Uint64
	for i := range bucket {
		e := bucket[i].Load()
		if e == 0 {
			free = &bucket[i]
		} else if e>>32 == hash>>32 && s.item(uint32(e)).Hash == hash {
			return &bucket[i]
		}
	}
	if free == nil {
		free = &bucket[bits.Reverse64(hash)%uint64(ways)]
	}
	return free
}

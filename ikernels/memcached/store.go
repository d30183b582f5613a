package memcached

import (
	"math"
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

	expiresShift = GetMcCacheLimitMC_EXPIRES_SHIFT
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

// A store writes the cache's memory, which NIC programs read at the same time (cache.h). It fills one segment after the other. To have
// memory again it takes the oldest segment, forgets the items that are asked for least, and moves the others behind the last. The segment is used
// again after a grace period. One goroutine uses the store.
type store struct {
	index     []atomic.Uint64 // ways of bucket 0, of bucket 1, and so on
	memory    []byte
	sketch    sketch
	current   func(*GetMcItem) bool // whether an item may still be answered
	forgotten uint8                 // how often the last was asked for that was forgotten to have memory
	ahead     int                   // bytes that were won beyond what must be
	segments  []uint32              // in the order in which they were filled; the last one is being filled
	at        uint32                // where in it the next item begins
	used      []uint32              // bytes of each segment that have items
	free      []uint32              // segments
	emptied   []uint32              // segments that programs may still read
}

// newStore begins a store in memory that is all zero.
func newStore(index []atomic.Uint64, memory []byte, frequencies sketch, current func(*GetMcItem) bool) *store {
	s := &store{index: index, memory: memory, sketch: frequencies, current: current}
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
	if reply > int(GetMcGetLimitMC_DATAGRAM) || !s.room(kept) {
		return false
	}
	cell := s.cell()
	i := s.item(cell)
	i.Hash, i.Guard, i.All, i.Expires = st.hash, st.guard, st.all, expires(st.expires)
	i.KeyLen = uint8(len(v.key))
	i.HeadLen = uint16(copy(i.Bytes[:], head))
	i.TailLen = uint16(copy(i.Bytes[i.HeadLen:], tail))
	i.CasLen = uint8(copy(i.Bytes[i.HeadLen+i.TailLen:], cas))
	s.fill(i)
	s.place(st.hash).Store(entry(st.hash, cell))
	return true
}

// expires is a moment in the units of items, or up to a unit earlier; 0 is never.
func expires(ns uint64) uint32 {
	if ns == 0 {
		return 0
	}
	return uint32(min(max(ns>>expiresShift, 1), math.MaxUint32))
}

// cell is where the next item begins.
func (s *store) cell() uint32 { return (s.segments[len(s.segments)-1]*segmentSize + s.at) / cellSize }

// fill takes the memory of an item that was written there.
func (s *store) fill(i *GetMcItem) {
	s.at += i.cells() * cellSize
	s.used[s.segments[len(s.segments)-1]] = s.at
}

// cells is how many cells an item fills.
func (i *GetMcItem) cells() uint32 {
	return (headerSize + uint32(i.HeadLen) + uint32(i.TailLen) + uint32(i.CasLen) + cellSize - 1) / cellSize
}

// kept is how many free segments are kept for the items of the oldest segment: they fit one.
const kept = 1

// room makes sure that the segment at hand has room for any item, and leaves some segments free.
func (s *store) room(left int) bool {
	return s.at <= segmentSize-itemMax || len(s.free) > left && s.next()
}

// next begins to fill the next segment.
func (s *store) next() bool {
	n := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.segments = append(s.segments, n)
	s.at = first(n)
	s.used[n] = s.at
	return true
}

// clean makes sure that some segments are free or soon will be. It says whether any wait for a grace period.
func (s *store) clean() bool {
	reserve := max(kept+1, len(s.used)/16)
	for n := min((len(s.free)+1)/2, 8); n > 0 && len(s.free)+len(s.emptied) < reserve; n-- {
		s.cleanOldest()
	}
	return len(s.emptied) > 0
}

// cleanOldest empties the oldest segment. So that memory is won, an eighth of what segments hold is forgotten on average: first what is no longer
// current, and then what is asked for least.
func (s *store) cleanOldest() {
	n := s.segments[0]
	s.segments = s.segments[1:]
	s.emptied = append(s.emptied, n)
	items, excess := s.living(n), -int(segmentSize/8*7)-s.ahead
	var bytes [int(GetMcSketchLimitMC_FREQUENCY_MAX) + 1]int // by frequency
	for _, l := range items {
		bytes[l.frequency] += l.size
		excess += l.size
	}
	s.forgotten = 0
	for ; excess > bytes[s.forgotten]; s.forgotten++ {
		excess -= bytes[s.forgotten]
	}
	for _, l := range items {
		tie := l.frequency == s.forgotten
		if l.frequency > s.forgotten || tie && excess <= 0 {
			s.move(l)
			continue
		}
		if tie {
			excess -= l.size
		}
		l.entry.Store(0)
	}
	s.ahead = min(-excess, len(s.memory)/8)
}

// threshold is how often a key is asked for at most that is not worth its memory. With no more than what was forgotten, it would soon be forgotten itself:
// it would be fetched, and seven others moved for its memory, for hardly a hit.
func (s *store) threshold() uint32 {
	if s.forgotten == 0 {
		return 0
	}
	return uint32(s.forgotten) + 1
}

// A living item may still be answered.
type living struct {
	*GetMcItem
	entry     *atomic.Uint64
	size      int // bytes
	frequency uint8
}

// living lists a segment's living items, and removes the entries of others.
func (s *store) living(segment uint32) (all []living) {
	begin := segment * segmentSize
	for at := first(segment); at < s.used[segment]; {
		cell := (begin + at) / cellSize
		i := s.item(cell)
		at += i.cells() * cellSize
		e := s.entryOf(i.Hash, cell)
		if e == nil {
			continue
		}
		if !s.current(i) {
			e.Store(0)
			continue
		}
		all = append(all, living{GetMcItem: i, entry: e, size: int(i.cells() * cellSize), frequency: s.sketch.frequency(i.Hash)})
	}
	return all
}

// move moves an item to where items are put.
func (s *store) move(l living) {
	s.room(0)
	cell := s.cell()
	to := unsafe.Slice((*byte)(unsafe.Pointer(s.item(cell))), l.size)
	copy(to, unsafe.Slice((*byte)(unsafe.Pointer(l.GetMcItem)), l.size))
	s.fill(l.GetMcItem)
	l.entry.Store(entry(l.Hash, cell))
}

// age halves all frequencies.
func (s *store) age() {
	s.sketch.age()
	s.forgotten /= 2
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
	n := oneOf(len(s.index)/int(ways), hash) * uint64(ways)
	return s.index[n : n+uint64(ways)]
}

// oneOf says which of n things a key has (mc_one_of in hash.h).
func oneOf(n int, hash uint64) uint64 { return uint64(uint32(hash)) * uint64(n) >> 32 }

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

// place is the entry for a key: the one that it has, or a free one, or that of the key that is asked for least.
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
		return s.coldest(bucket)
	}
	return free
}

// coldest is the entry of a full bucket that is no longer current, or whose key is asked for least.
func (s *store) coldest(bucket []atomic.Uint64) (coldest *atomic.Uint64) {
	least := int(GetMcSketchLimitMC_FREQUENCY_MAX) + 1
	for i := range bucket {
		item := s.item(uint32(bucket[i].Load()))
		if !s.current(item) {
			return &bucket[i]
		}
		if f := int(s.sketch.frequency(item.Hash)); f < least {
			least, coldest = f, &bucket[i]
		}
	}
	return coldest
}

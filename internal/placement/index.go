package placement

import "math"

// index finds nodes of one kind. It is a segment tree over them in tree order: each entry says about a run of nodes what its nodes have free
// at most, of each resource on its own, so that a search passes over runs none of whose nodes can fit. What the entries cannot say, a
// search asks about single nodes.
type index struct {
	ids     []NodeID
	size    int32 // leaves: a power of 2
	entries []entry
}

// entry is about a run of nodes. Closed nodes count as having nothing.
type entry struct {
	most   Vector // free
	least  int64  // slack: the weighted sum of what is free
	labels uint64 // of any of the nodes; isOpen where one is open
}

const isOpen = 1

var nothing = entry{most: Vector{math.MinInt64 / 4, math.MinInt64 / 4, math.MinInt64 / 4, math.MinInt64 / 4, math.MinInt64 / 4}, least: math.MaxInt64}

func newIndex(ids []NodeID, leaf func(NodeID) entry) index {
	x := index{ids: ids, size: 1}
	for int(x.size) < len(ids) {
		x.size *= 2
	}
	x.entries = make([]entry, 2*x.size)
	for i := range x.size {
		x.entries[x.size+i] = nothing
		if int(i) < len(ids) {
			x.entries[x.size+i] = leaf(ids[i])
		}
	}
	for i := x.size - 1; i > 0; i-- {
		x.entries[i] = join(&x.entries[2*i], &x.entries[2*i+1])
	}
	return x
}

func join(a, b *entry) entry {
	e := *a
	for r := range e.most {
		e.most[r] = max(e.most[r], b.most[r])
	}
	e.least = min(a.least, b.least)
	e.labels |= b.labels
	return e
}

// set changes what the index knows of a node. O(log nodes).
func (x *index) set(rank int32, e entry) {
	i := x.size + rank
	x.entries[i] = e
	for i /= 2; i > 0; i /= 2 {
		e := join(&x.entries[2*i], &x.entries[2*i+1])
		if e == x.entries[i] {
			return
		}
		x.entries[i] = e
	}
}

// search is for a node of the index's kind.
type search struct {
	*index
	span
	need   *Vector
	offset int64 // slack of a node is its entry's least less this
	labels uint64
	fits   func(NodeID) bool
	share  *shares // of nearest

	found NodeID // so far; its value is slack for bestFit and what it lacks for nearest
	value float64
}

// walk calls leaf for the nodes of the span that are below entry i, whose leaves are [lo, hi), but for runs that may rules out. It is told the
// first node of a run. order, if not nil, is true if the right half of a run is to be searched first.
func (s *search) walk(i, lo, hi int32, may func(*entry, NodeID) bool, order func(l, r *entry) bool, leaf func(int32, *entry)) {
	if lo >= s.hi || hi <= s.lo {
		return
	}
	e := &s.entries[i]
	if e.labels&s.labels != s.labels || !may(e, s.ids[max(lo, s.lo)]) {
		return
	}
	if hi-lo == 1 {
		leaf(lo, e)
		return
	}
	mid := (lo + hi) / 2
	if order != nil && order(&s.entries[2*i], &s.entries[2*i+1]) {
		s.walk(2*i+1, mid, hi, may, order, leaf)
		s.walk(2*i, lo, mid, may, order, leaf)
		return
	}
	s.walk(2*i, lo, mid, may, order, leaf)
	s.walk(2*i+1, mid, hi, may, order, leaf)
}

// better says whether a node whose value is at least value, and whose number is at least id, can replace the one found.
func (s *search) better(value float64, id NodeID) bool {
	return s.found == Nowhere || value < s.value || value == s.value && id < s.found
}

// firstFit finds the first node that fits, unless one before it was found.
func (s *search) firstFit() {
	s.walk(1, 0, s.size, func(e *entry, id NodeID) bool {
		return (s.found == Nowhere || id < s.found) && e.most.covers(s.need)
	}, nil, func(i int32, _ *entry) {
		if id := s.ids[i]; s.fits(id) {
			s.found = id
		}
	})
}

// slack is the least that would be left on a node of a run.
func (s *search) slack(e *entry) float64 { return float64(e.least - s.offset) }

// bestFit finds the node that fits with the least slack, the first of several, unless a better one was found.
func (s *search) bestFit() {
	s.walk(1, 0, s.size, func(e *entry, id NodeID) bool {
		return e.most.covers(s.need) && s.better(s.slack(e), id)
	}, func(l, r *entry) bool { return r.least < l.least }, func(i int32, e *entry) {
		if id := s.ids[i]; s.fits(id) {
			s.found, s.value = id, s.slack(e)
		}
	})
}

// nearest finds the node that lacks the least of what is needed, the first of several, among those that fits allows.
func (s *search) nearest() {
	s.walk(1, 0, s.size, func(e *entry, id NodeID) bool {
		return s.better(s.share.missing(&e.most, s.need), id)
	}, func(l, r *entry) bool { return s.share.missing(&r.most, s.need) < s.share.missing(&l.most, s.need) }, func(i int32, e *entry) {
		if id := s.ids[i]; s.fits(id) {
			s.found, s.value = id, s.share.missing(&e.most, s.need)
		}
	})
}

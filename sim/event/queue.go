// Package event has the clock and the queue of the discrete-event simulators. The queue takes amortised time O(log D), to the base 64, for an
// event that is D picoseconds ahead, however many wait: see [Queue].
package event

import (
	"math/bits"
	"time"
)

// Time is simulated time in picoseconds: a byte takes 40 of them at 200 Gbit/s. An int64 holds 106 days.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Of converts a duration.
func Of(d time.Duration) Time { return Time(d) * Nanosecond }

// Duration rounds t down to nanoseconds.
func (t Time) Duration() time.Duration { return time.Duration(t / Nanosecond) }

// Micros is t in microseconds.
func (t Time) Micros() float64 { return float64(t) / float64(Microsecond) }

// Queue holds events of type E until their time. Events of the same time leave in the order in which they came, so that a simulation is
// the same whenever it runs. No event may be pushed for a time before that of the event popped last. The zero Queue is empty, at time 0.
//
// It is a multi-level bucket queue (E. Denardo, B. Fox: Shortest-route methods: 1. reaching, pruning, and buckets, Operations Research 27,
// 1979; as a timer: G. Varghese, A. Lauck: Hashed and hierarchical timing wheels, SOSP 1987). Times are numbers of digits to the base 64. An
// event is on the level of the highest digit in which its time differs from now, in the bucket of that digit of its time. It moves to a
// lower level at most once per digit, so that Push and Pop take amortised O(log D), to the base 64, where D is how far ahead events are.
// Two events of the same time are always in the same bucket, which keeps their order. Memory is O(the most events that wait at a time).
type Queue[E any] struct {
	now        Time
	len        int
	overflowed bool
	filled     uint16 // bit i: level i has events
	levels     [(64 + digitBits - 1) / digitBits]level[E]
	free       *chunk[E]
	spent      *chunk[E] // had the event popped last, and no other
}

const digitBits = 6 // so that a word says which buckets of a level have events

type level[E any] struct {
	filled  uint64 // bit i: bucket i has events
	buckets [1 << digitBits]bucket[E]
}

// bucket is a list of chunks. It has no more memory than its events need: of those of one time there are many, and of most times none.
type bucket[E any] struct{ first, last *chunk[E] }

type chunk[E any] struct {
	next     *chunk[E]
	from, to int32 // items that are in use
	items    [16]item[E]
}

type item[E any] struct {
	at Time
	e  E
}

// Now is the time of the event popped last.
func (q *Queue[E]) Now() Time { return q.now }

// Overflowed says that an event was pushed for a time that the clock cannot show. What comes after is no longer right.
func (q *Queue[E]) Overflowed() bool { return q.overflowed }

// Len counts the events that wait.
func (q *Queue[E]) Len() int { return q.len }

// Push adds an event. It panics if its time has passed. An event for a time that the clock cannot show, which a sum of times makes
// negative, is not added: see Overflowed.
func (q *Queue[E]) Push(at Time, e E) {
	if at < q.now {
		if at < 0 {
			q.overflowed = true
			return
		}
		panic("event: pushed into the past")
	}
	q.put(&item[E]{at, e})
	q.len++
}

func (q *Queue[E]) put(it *item[E]) {
	i := uint(bits.Len64(uint64(it.at^q.now)|1)-1) / digitBits
	digit := uint64(it.at) >> (i * digitBits) % (1 << digitBits)
	l := &q.levels[i]
	l.filled |= 1 << digit
	q.filled |= 1 << i
	b := &l.buckets[digit]
	c := b.last
	if c == nil || int(c.to) == len(c.items) {
		c = q.extend(b)
	}
	c.items[c.to] = *it
	c.to++
}

// extend adds an empty chunk to a bucket.
func (q *Queue[E]) extend(b *bucket[E]) *chunk[E] {
	if q.free == nil {
		many := make([]chunk[E], 16)
		for i := range many {
			q.release(&many[i])
		}
	}
	c := q.free
	q.free, c.next, c.from, c.to = c.next, nil, 0, 0
	if b.last == nil {
		b.first = c
	} else {
		b.last.next = c
	}
	b.last = c
	return c
}

func (q *Queue[E]) release(c *chunk[E]) { c.next, q.free = q.free, c }

// Pop removes the first event and sets the clock to its time. The event is nil if there is none; it is valid until the next Pop.
func (q *Queue[E]) Pop() (at Time, e *E) {
	if q.spent != nil {
		q.release(q.spent)
		q.spent = nil
	}
	if q.filled == 0 {
		return q.now, nil
	}
	if q.filled&1 == 0 {
		q.advance()
	}
	l := &q.levels[0]
	digit := bits.TrailingZeros64(l.filled)
	b := &l.buckets[digit]
	c := b.first
	it := &c.items[c.from]
	q.now = it.at
	q.len--
	if c.from++; c.from == c.to {
		q.spent = c
		if b.first = c.next; b.first == nil {
			b.last = nil
			q.emptied(0, digit)
		}
	}
	return it.at, &it.e
}

// emptied notes that a bucket of a level has no events any more.
func (q *Queue[E]) emptied(i, digit int) {
	if q.levels[i].filled &^= 1 << digit; q.levels[i].filled == 0 {
		q.filled &^= 1 << i
	}
}

// advance sets the clock to the earliest time of the first bucket of the lowest level, and moves what is there down.
func (q *Queue[E]) advance() {
	i := bits.TrailingZeros16(q.filled)
	l := &q.levels[i]
	digit := bits.TrailingZeros64(l.filled)
	first := l.buckets[digit].first
	l.buckets[digit] = bucket[E]{}
	q.emptied(i, digit)
	q.now = first.items[0].at
	for c := first; c != nil; c = c.next {
		for j := range c.items[:c.to] {
			q.now = min(q.now, c.items[j].at)
		}
	}
	for c := first; c != nil; {
		for j := range c.items[:c.to] {
			q.put(&c.items[j]) // to a lower level: all of them agree with now in this digit
		}
		next := c.next
		q.release(c)
		c = next
	}
}

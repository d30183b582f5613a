// Package event has the clock and the queue of the discrete-event simulators.
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
// It is a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan: Faster algorithms for the shortest path problem, 1990): bucket i > 0 has the events
// whose time first differs from now in bit i-1. An event moves to a lower bucket at most once per bit, so that Push and Pop take
// amortised O(log D), where D is how far ahead events are. Two events of the same time are always in the same bucket, which keeps
// their order.
type Queue[E any] struct {
	now     Time
	filled  uint64 // bit i: bucket i has events
	buckets [64]bucket[E]
	head    int // of bucket 0: the events before it have left
	len     int
}

type bucket[E any] []item[E]

type item[E any] struct {
	at Time
	e  E
}

// Now is the time of the event popped last.
func (q *Queue[E]) Now() Time { return q.now }

// Len counts the events that wait.
func (q *Queue[E]) Len() int { return q.len }

// Push adds an event. It panics if its time has passed.
func (q *Queue[E]) Push(at Time, e E) {
	if at < q.now {
		panic("event: pushed into the past")
	}
	q.put(item[E]{at, e})
	q.len++
}

func (q *Queue[E]) put(it item[E]) {
	i := bits.Len64(uint64(it.at ^ q.now))
	q.buckets[i] = append(q.buckets[i], it)
	q.filled |= 1 << i
}

// Pop removes the first event and sets the clock to its time. ok is false if there is none.
func (q *Queue[E]) Pop() (at Time, e E, ok bool) {
	if q.filled&1 == 0 {
		if q.filled == 0 {
			return q.now, e, false
		}
		q.advance()
	}
	first := q.buckets[0][q.head]
	q.head++
	q.len--
	if q.head == len(q.buckets[0]) {
		q.buckets[0], q.head = q.buckets[0][:0], 0
		q.filled &^= 1
	}
	return first.at, first.e, true
}

// advance sets the clock to the earliest time of the lowest bucket, and moves what is there down.
func (q *Queue[E]) advance() {
	i := bits.TrailingZeros64(q.filled)
	from := q.buckets[i]
	q.now = from[0].at
	for _, it := range from[1:] {
		q.now = min(q.now, it.at)
	}
	q.buckets[i] = from[:0]
	q.filled &^= 1 << i
	for _, it := range from {
		q.put(it) // into a lower bucket: all of from agree with now in bit i-1
	}
}

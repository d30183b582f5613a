// Package impair is a network with adjustable faults: it drops, duplicates, reorders, corrupts and delays packets, by a seed.
// A [Link] does so within a program, a [Relay] between sockets. Linux's netem does the same where a kernel has it.
package impair

import (
	"container/heap"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Faults are a network's faults. Rates are probabilities; each packet is decided by itself.
type Faults struct {
	Seed      uint64
	Drop      float64
	Duplicate float64 // the copy follows its original at once
	Reorder   float64 // held back until Behind later packets have gone by, or Hold is over
	Corrupt   float64 // one bit of the first Span bytes is flipped
	Delay     time.Duration
	Jitter    time.Duration // up to so much more, evenly spread; packets that overtake by it do not count as reordered

	Behind int           // 0 means 1
	Hold   time.Duration // 0 means 2 ms
	Span   int           // 0 means the whole packet
}

// Direction is a way through the network. Its packets are decided independently of the other's.
type Direction uint64

// The directions of a Relay.
const (
	ToServer Direction = iota
	ToClient
)

// Fate is what happens to one packet.
type Fate struct {
	Drop, Duplicate, Reorder, Corrupt bool
	Bit                               float64 // which bit is flipped, as a fraction of all
	Delay                             time.Duration
}

// Fates are the fates of a direction's packets, in the order in which they come. They depend only on f and d.
func (f Faults) Fates(d Direction) iter.Seq[Fate] {
	r := rand.New(rand.NewPCG(f.Seed, uint64(d)))
	return func(yield func(Fate) bool) {
		for yield(f.fate(r)) {
		}
	}
}

// fate draws equally many numbers for every packet, so that no rate changes which packets another rate hits.
func (f Faults) fate(r *rand.Rand) Fate {
	drop, twice, hold, corrupt, bit, jitter := r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64(), r.Float64()
	fate := Fate{Drop: drop < f.Drop, Bit: bit, Delay: f.Delay + time.Duration(jitter*float64(f.Jitter))}
	if !fate.Drop {
		fate.Duplicate, fate.Reorder, fate.Corrupt = twice < f.Duplicate, hold < f.Reorder, corrupt < f.Corrupt
	}
	return fate
}

// Counts are a direction's counters. A packet that was not dropped is Delivered, with its copy, or Waiting.
type Counts struct {
	Packets, Dropped, Duplicated, Reordered, Corrupted, Delayed uint64
	Delivered                                                   uint64
	Waiting                                                     int // held back or delayed
}

// A Link is one direction. Its methods may be called from any goroutine.
type Link struct {
	faults Faults
	next   func() (Fate, bool)
	stop   func()
	wake   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	counts Counts
	held   []*packet // until others have gone by
	queue  queue     // of what has a time
	order  uint64
	closed bool
}

type packet struct {
	data    []byte
	deliver func([]byte)
	copies  int
	behind  int // how many others have to go by
	delay   time.Duration
	held    bool
	due     time.Time
	order   uint64
}

// NewLink makes a link.
func NewLink(f Faults, d Direction) *Link {
	f.Behind = max(f.Behind, 1)
	if f.Hold == 0 {
		f.Hold = 2 * time.Millisecond
	}
	l := &Link{faults: f, wake: make(chan struct{}, 1), done: make(chan struct{})}
	l.next, l.stop = iter.Pull(f.Fates(d))
	go l.run()
	return l
}

// Close drops waiting packets, and returns when no packet is being delivered any more.
func (l *Link) Close() {
	l.mu.Lock()
	closed := l.closed
	l.closed, l.held, l.queue = true, nil, nil
	l.mu.Unlock()
	if !closed {
		l.stop()
		close(l.wake)
	}
	<-l.done
}

// Counts returns the counters so far.
func (l *Link) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Pass hands p to deliver, now or later, once, twice or never. deliver may keep what it is given, and must not call Pass of the
// same Link.
func (l *Link) Pass(p []byte, deliver func([]byte)) {
	for _, ready := range l.take(p, deliver) {
		l.hand(ready)
	}
}

func (l *Link) hand(p *packet) {
	for range p.copies - 1 {
		p.deliver(slices.Clone(p.data))
	}
	p.deliver(p.data)
}

// take decides on a packet, and returns what is to be delivered at once.
func (l *Link) take(data []byte, deliver func([]byte)) (now []*packet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	fate, _ := l.next()
	l.counts.Packets++
	if fate.Drop {
		l.counts.Dropped++
		return nil
	}
	p := &packet{data: slices.Clone(data), deliver: deliver, copies: 1, delay: fate.Delay}
	if fate.Duplicate {
		l.counts.Duplicated++
		p.copies = 2
	}
	if fate.Corrupt && len(data) > 0 {
		l.counts.Corrupted++
		l.flip(p.data, fate.Bit)
	}
	l.counts.Waiting++
	if fate.Reorder {
		l.counts.Reordered++
		p.held, p.behind = true, l.faults.Behind
		l.held = append(l.held, p)
		l.at(p, time.Now().Add(l.faults.Hold))
		return nil
	}
	now = l.release(now, p)
	l.held = slices.DeleteFunc(l.held, func(h *packet) bool {
		h.behind--
		if h.behind <= 0 {
			now = l.release(now, h)
		}
		return h.behind <= 0
	})
	return now
}

func (l *Link) flip(p []byte, part float64) {
	span := len(p)
	if l.faults.Span > 0 {
		span = min(span, l.faults.Span)
	}
	bit := int(part * float64(8*span))
	p[bit/8] ^= 1 << (bit % 8)
}

// release lets a packet go: to now, or to the queue where it is delayed.
func (l *Link) release(now []*packet, p *packet) []*packet {
	if p.held {
		p.held = false
		l.queue = slices.DeleteFunc(l.queue, func(q *packet) bool { return q == p })
		heap.Init(&l.queue)
	}
	if p.delay > 0 {
		l.counts.Delayed++
		l.at(p, time.Now().Add(p.delay))
		return now
	}
	return l.delivered(now, p)
}

func (l *Link) delivered(now []*packet, p *packet) []*packet {
	l.counts.Waiting--
	l.counts.Delivered += uint64(p.copies)
	return append(now, p)
}

func (l *Link) at(p *packet, due time.Time) {
	l.order++
	p.due, p.order = due, l.order
	heap.Push(&l.queue, p)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run delivers the queue's packets, in order.
func (l *Link) run() {
	defer close(l.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		now, wait := l.expired()
		for _, p := range now {
			l.hand(p)
		}
		timer.Reset(wait)
		select {
		case _, open := <-l.wake:
			if !open {
				return
			}
		case <-timer.C:
		}
	}
}

// expired takes due packets out of the queue, and says when the next is due.
func (l *Link) expired() (now []*packet, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) > 0 {
		if wait := time.Until(l.queue[0].due); wait > 0 {
			return now, wait
		}
		p := heap.Pop(&l.queue).(*packet)
		if p.held { // nothing came behind it
			l.held = slices.DeleteFunc(l.held, func(h *packet) bool { return h == p })
			p.held = false
			now = l.release(now, p)
			continue
		}
		now = l.delivered(now, p)
	}
	return now, time.Hour
}

// queue is a heap of packets by when they are due.
type queue []*packet

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].order < q[j].order
	}
	return q[i].due.Before(q[j].due)
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(p any)   { *q = append(*q, p.(*packet)) }
func (q *queue) Pop() any {
	old := *q
	p := old[len(old)-1]
	*q = old[:len(old)-1]
	return p
}

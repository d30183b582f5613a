package lambdanic

import "time"

// How a flight adapts. Intervals are docs/protocol.md's. The window follows TCP's additive increase and multiplicative
// decrease (RFC 5681), with a floor that keeps enough packets coming behind a lost one to notice the loss.
const (
	firstInterval = 20 * time.Millisecond
	lastInterval  = 500 * time.Millisecond

	firstWindow = 64
	minWindow   = 32
	maxWindow   = 512

	// A packet counts as lost once a packet sent this many transmissions later is confirmed.
	reorderLimit = 8

	never = time.Duration(1<<63 - 1)
)

// A flight is a sequence of packets that are sent until each is confirmed, at most a window of them at once. The request's
// packets are one flight, the pulls of a reply another. It is told the time, and sends nothing itself.
type flight struct {
	count int    // packets in all
	base  int    // every packet before it is confirmed
	next  int    // the first packet that was never sent
	ring  []slot // of packet i at i % len: the packets from base on
	once  bool   // never send a packet twice

	window      int
	threshold   int // where doubling the window per round trip ends
	credit      int // confirmations towards the next single step
	outstanding int // sent, neither confirmed nor lost
	lost        int // to be sent again

	sends    uint32        // transmissions so far
	newest   uint32        // the latest transmission known to have arrived
	scanned  uint32        // newest, when last looked for lost packets
	recovery uint32        // losses among transmissions up to here have been paid for
	expiry   time.Duration // no outstanding packet expires before
}

type slot struct {
	sent  time.Duration
	order uint32 // of its last transmission
	tries uint8
	state slotState
}

type slotState uint8

const (
	slotWaiting slotState = iota
	slotLost
	slotConfirmed
)

// start readies f for count packets, and reuses its memory.
func (f *flight) start(count int, once bool) {
	ring := f.ring
	if n := min(count, maxWindow); cap(ring) < n {
		ring = make([]slot, n)
	} else {
		ring = ring[:n]
	}
	*f = flight{count: count, ring: ring, once: once, window: firstWindow, threshold: maxWindow, expiry: never}
}

func (f *flight) at(i int) *slot { return &f.ring[i%len(f.ring)] }

func (f *flight) done() bool { return f.base == f.count }

// pick chooses a packet below limit to send now, lost ones first, and takes it as sent.
func (f *flight) pick(now time.Duration, limit int) (index int, again, ok bool) {
	if f.outstanding >= f.window {
		return 0, false, false
	}
	if f.lost > 0 {
		for i := f.base; i < f.next; i++ {
			if f.at(i).state == slotLost {
				f.lost--
				f.sent(i, now)
				return i, true, true
			}
		}
	}
	if f.next >= min(f.count, limit, f.base+len(f.ring)) {
		return 0, false, false
	}
	i := f.next
	f.next++
	*f.at(i) = slot{}
	f.sent(i, now)
	return i, false, true
}

func (f *flight) sent(i int, now time.Duration) {
	s := f.at(i)
	f.sends++
	f.outstanding++
	s.sent, s.order, s.state = now, f.sends, slotWaiting
	if !f.once {
		f.expiry = min(f.expiry, now+s.interval())
	}
}

// interval is how long to wait for a confirmation before sending again.
func (s *slot) interval() time.Duration {
	return min(firstInterval<<min(s.tries, 5), lastInterval)
}

// confirm says that packet i arrived, and reports whether that is news.
func (f *flight) confirm(i int) bool {
	if i < f.base || i >= f.next {
		return false
	}
	s := f.at(i)
	switch s.state {
	case slotConfirmed:
		return false
	case slotLost:
		f.lost--
	case slotWaiting:
		f.outstanding--
	}
	s.state = slotConfirmed
	if s.tries == 0 { // else nobody knows which transmission arrived (Karn and Partridge, SIGCOMM 1987)
		f.newest = max(f.newest, s.order)
	}
	f.grow()
	for f.base < f.next && f.at(f.base).state == slotConfirmed {
		f.base++
	}
	return true
}

// confirmAll says that every packet arrived.
func (f *flight) confirmAll() {
	f.base, f.next, f.outstanding, f.lost, f.expiry = f.count, f.count, 0, 0, never
}

// doubt takes the last packet's confirmation back, for when all packets are confirmed and yet no answer came.
func (f *flight) doubt(now time.Duration) {
	f.base = f.count - 1
	f.sent(f.base, now)
}

func (f *flight) grow() {
	switch {
	case f.window >= maxWindow:
	case f.window < f.threshold:
		f.window++
	default:
		if f.credit++; f.credit >= f.window {
			f.credit = 0
			f.window++
		}
	}
}

// expire finds the packets that are lost by now: those that waited for too long, and those that many later ones overtook.
func (f *flight) expire(now time.Duration) {
	late, overtaken := now >= f.expiry, f.newest-f.scanned >= reorderLimit
	if f.once || !late && !overtaken {
		return
	}
	f.scanned, f.expiry = f.newest, never
	for i := f.base; i < f.next; i++ {
		s := f.at(i)
		if s.state != slotWaiting {
			continue
		}
		due := s.sent + s.interval()
		if due > now && s.order+reorderLimit > f.newest {
			f.expiry = min(f.expiry, due)
			continue
		}
		f.lose(s)
	}
}

func (f *flight) lose(s *slot) {
	s.state = slotLost
	s.tries = min(s.tries+1, 8)
	f.outstanding--
	f.lost++
	if s.order > f.recovery { // once per window, not once per packet
		f.recovery = f.sends
		f.window = max(f.window/2, minWindow)
		f.threshold = f.window
	}
}

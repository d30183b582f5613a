package lambdanic

import (
	"fmt"
	"math"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// An exchange is one attempt at a call: which packets to send, and what the packets that arrive mean. It does no I/O and
// reads no clock, so that Conn and Client share it and tests can drive it. The zero value is ready for start.
type exchange struct {
	head api.Header    // header of the request's packets
	room int           // each is padded to it
	due  time.Duration // when the caller gives up; never: after so long without progress as the header says
	max  int           // bytes of reply that are acceptable
	// reserve is Request.Reserve.
	reserve func(bytes int) error

	tagger *tagger // nil: packets have no tags

	body  source
	reply sink

	up      flight // the request's packets
	granted int    // how many of them the server has allowed so far
	down    flight // pulls of the reply; packet 0 needs no pull
	pulling bool
	acked   bool // an acknowledgement came: the server keeps the message, and answers it as a whole
	parted  bool // a response to a later packet came: the server answers each packet
	probed  bool // a later packet was sent again, to provoke such a response
	guessed bool // pulling because that response did not come

	begun    bool // the first response arrived
	first    api.Header
	size     int // bytes per packet of the reply but the last
	finished bool
	err      error
	told     error // why the server did not take a packet that will be sent again

	silent int  // resends of the first unacknowledged packet since the last packet arrived
	asked  bool // asked the directory since the last packet arrived

	reached int           // packets of request and reply that are through
	moved   time.Duration // when the last one got through

	resent     uint64
	duplicates uint64
	malformed  uint64
}

// A source has the request's bytes. A sink takes the reply's.
type source interface {
	fragment(i int) []byte // of packet i < limit
	limit() int
}

type sink interface {
	begin(total, count int)
	put(index, offset int, p []byte)
	limit() int // packets from here on cannot be taken yet
}

// start readies x for another attempt with a new request ID, and keeps the memory it has.
func (x *exchange) start(now, due time.Duration, head api.Header, room int, once bool, body source, reply sink) {
	*x = exchange{head: head, room: room, due: due, granted: firstWindow, max: x.max, reserve: x.reserve, tagger: x.tagger, body: body, reply: reply, up: x.up, down: x.down, moved: now}
	x.up.start(int(head.Count), once)
}

// poll fills b with packets that are due, all of one size, and says when to poll again if nothing arrives before. A full
// batch means that there may be more.
func (x *exchange) poll(now time.Duration, b *batch) time.Duration {
	b.reset()
	if x.finished {
		return never
	}
	if x.due != never {
		x.head.DeadlineUS = deadlineUS(x.due - now)
	}
	f, limit := &x.up, x.body.limit()
	if x.pulling {
		f, limit = &x.down, x.reply.limit()
	} else if !x.acked { // each packet may bring one of the reply
		limit = min(limit, x.reply.limit())
	} else {
		limit = min(limit, x.granted)
	}
	f.expire(now)
	b.bulk = f.count-f.base > firstWindow
	for !b.full() {
		i, again, ok := f.pick(now, limit)
		if !ok {
			break
		}
		if again {
			x.resent++
			x.probed = x.probed || i > 0
			if i == f.base {
				x.silent++
			}
		}
		if x.pulling {
			x.appendPull(b, i, again)
		} else {
			x.appendRequest(b, i, again)
		}
	}
	if !x.pulling && x.head.Count > 1 {
		b.setFlag(api.FlagAckWanted)
	}
	x.tagger.tagAll(b)
	return f.expiry
}

// deadlineUS is a header's deadline for a call that ends after d. A call that is over gets the least value, as 0 means none.
func deadlineUS(d time.Duration) uint32 {
	return uint32(min(max(d.Microseconds(), 1), math.MaxUint32))
}

// ackEvery is how many packets of a request share an acknowledgement, whose bitmap covers 64.
const ackEvery = 16

func (x *exchange) appendRequest(b *batch, i int, again bool) {
	h := x.head
	h.Index = uint32(i)
	p, size := x.body.fragment(i), x.room
	if h.Count > 1 {
		// The last packet is padded like the others, because any of them may complete the message and carry the reply.
		if again || i == 0 || i%ackEvery == ackEvery-1 {
			h.Flags |= api.FlagAckWanted
		}
	}
	if again {
		h.Flags |= api.FlagResend
	}
	b.append(&h, p, size)
}

func (x *exchange) appendPull(b *batch, i int, again bool) {
	h := x.head
	h.Type, h.Index, h.Count, h.Revision, h.MessageLen = api.TypePull, uint32(i), x.first.Count, x.first.Revision, uint32(x.size)
	if again {
		h.Flags |= api.FlagResend
	}
	var p []byte
	if x.head.Count == 1 {
		p = x.body.fragment(0)
	}
	b.append(&h, p, x.size)
}

// release fills b with the acknowledgement that lets the server forget message and reply, if it keeps them.
func (x *exchange) release(b *batch) {
	b.reset()
	if x.head.Count == 1 && x.first.Count <= 1 && x.head.Flags&api.FlagOnce == 0 {
		return
	}
	h := x.head
	h.Type, h.Flags, h.Revision = api.TypeAck, h.Flags|api.FlagDone, x.first.Revision
	b.append(&h, nil, 0)
	x.tagger.tagAll(b)
}

// receive takes in a packet with x's request ID.
func (x *exchange) receive(now time.Duration, h *api.Header, payload []byte) {
	if !x.tagger.accepts(h, payload) {
		x.distrust(h)
		return
	}
	x.silent, x.asked = 0, false
	switch {
	case x.finished:
		x.duplicates++
	case h.Workload != x.head.Workload:
		x.malformed++
	case h.Type == api.TypeError:
		x.refused(h)
	case h.Type == api.TypeAck:
		x.acknowledge(now, h, payload)
	case h.Type == api.TypeResponse:
		x.respond(h, payload)
	default:
		x.malformed++
	}
	x.progress(now)
}

// asks reports, once per silence, that it is time to ask where the function is: its place refused a packet, or has been silent for too
// long. A packet that may be executed but once never goes elsewhere, as the silent place may have executed it, and a refusal does not
// say of which packet it is.
func (x *exchange) asks(refused bool) bool {
	if x.finished || x.asked || x.up.once || x.head.Flags&api.FlagOnce != 0 || !refused && x.silent < api.RPCAskAfter {
		return false
	}
	x.asked = true
	return true
}

// progress notes whether the last packet brought the exchange on. It counts upwards only, so that a server whose packets say
// nothing new cannot keep a call alive.
func (x *exchange) progress(now time.Duration) {
	n := x.up.base
	if x.pulling {
		n += x.down.base
	}
	if n > x.reached {
		x.reached, x.moved = n, now
	}
}

func (x *exchange) refused(h *api.Header) {
	e := ErrorOf(h)
	switch {
	case e.Code == api.CodeBusy && x.head.Flags&api.FlagOnce != 0: // it did not run, so it is sent again after the growing resend interval
		x.told = e
		return
	case e.Code == api.CodeStale && x.guessed: // wrong: there is nothing to pull
		x.pulling, x.parted = false, true
		return
	}
	x.fail(e)
}

// distrust takes in a packet that is not tagged as it should be. It may be anybody's, so it changes nothing. But an error may be the server's, which
// does not know the key.
func (x *exchange) distrust(h *api.Header) {
	if h.Type == api.TypeError {
		x.told = ErrorOf(h)
		return
	}
	x.malformed++
}

func (x *exchange) fail(err error) { x.err, x.finished = err, true }

func (x *exchange) acknowledge(now time.Duration, h *api.Header, payload []byte) {
	if len(payload) != 8 || h.Index >= x.head.Count || x.head.Count == 1 {
		x.malformed++
		return
	}
	if x.pulling {
		x.duplicates++
		return
	}
	x.acked = true
	if x.begun && !x.parted {
		x.pull()
		return
	}
	base := int(h.Index) &^ 63
	for bits := be.Uint64(payload); bits != 0; bits &= bits - 1 {
		x.up.confirm(base + trailingZeros(bits))
	}
	if h.Grant == 0 { // the server does not say
		x.granted = noLimit
	}
	x.granted = max(x.granted, int(min(h.Grant, x.head.Count)))
	if x.up.done() {
		x.up.doubt(now)
	}
}

func (x *exchange) respond(h *api.Header, payload []byte) {
	if x.failed(h, payload) {
		x.end(*h, payload)
		return
	}
	offset, size, err := h.Placement()
	if err != nil {
		x.malformed++
		return
	}
	if !x.begun && !x.begin(h, size) || x.contradicts(h, size) {
		return
	}
	if !x.pulling && x.whole(h) {
		if h.Index != 0 {
			x.malformed++
			return
		}
		x.reply.put(0, 0, payload)
		x.pull()
		return
	}
	x.take(h, offset, payload)
	if !x.finished && !x.pulling && !x.parted && x.probed {
		x.guessed = true
		x.pull()
	}
}

// failed reports whether h says that the lambda failed on a packet of the request, or on the whole request, so that h is the whole
// answer. The answers to other packets no longer matter then.
func (x *exchange) failed(h *api.Header, payload []byte) bool {
	if x.head.Count == 1 || api.Status(h.Code) == api.StatusOK || x.pulling && !x.guessed {
		return false
	}
	return h.Index < x.head.Count && (int(h.MessageLen) == len(payload) || !x.whole(h))
}

// end takes h as the whole answer, in place of what arrived before.
func (x *exchange) end(h api.Header, payload []byte) {
	h.Index, h.Count, h.MessageLen = 0, 1, uint32(len(payload))
	if x.begin(&h, len(payload)) {
		x.reply.put(0, 0, payload)
		x.finished = true
	}
}

// contradicts reports whether h belongs to another answer than the one that began, maybe by another revision. The first
// one stands.
func (x *exchange) contradicts(h *api.Header, size int) bool {
	f := &x.first
	if h.Count == f.Count && h.MessageLen == f.MessageLen && h.Code == f.Code && h.Revision == f.Revision && size == x.size {
		return false
	}
	x.duplicates++
	if !x.pulling && h.Revision != f.Revision {
		x.fail(ErrStale) // in mode stream nobody will complete the first one
	}
	return true
}

// take puts one packet of the reply where it belongs.
func (x *exchange) take(h *api.Header, offset int, payload []byte) {
	i := int(h.Index)
	if x.guessed && i >= x.down.next { // nobody pulled it: the guess was wrong
		x.pulling = false
	}
	x.parted = x.parted || !x.pulling && i > 0
	f := &x.up
	if x.pulling {
		f = &x.down
	}
	if !f.confirm(i) {
		x.duplicates++
		return
	}
	x.reply.put(i, offset, payload)
	x.finished = f.done()
	if x.guessed && x.pulling {
		x.up.confirm(i)
	}
}

// begin takes h as the first response that arrived.
func (x *exchange) begin(h *api.Header, size int) bool {
	if h.Index > 0 && h.Count != x.head.Count {
		x.malformed++
		return false
	}
	if int(h.MessageLen) > x.max {
		x.fail(fmt.Errorf("%w: %d bytes", ErrReplyTooLarge, h.MessageLen))
		return false
	}
	if x.reserve != nil {
		if err := x.reserve(int(h.MessageLen)); err != nil {
			x.fail(err)
			return false
		}
	}
	x.begun, x.first, x.size = true, *h, size
	x.reply.begin(int(h.MessageLen), int(h.Count))
	return true
}

// whole reports whether response h certainly answers the request as a whole. If not, it may be one of a series, one for each
// packet. The two look alike where the reply has as many packets as the request, and what else arrives must decide: after
// an acknowledgement it is whole; after a response to a later packet, one of a series; and where a later packet was sent
// again and still packet 0 is all that comes back, a pull finds out.
func (x *exchange) whole(h *api.Header) bool {
	n := x.head.Count
	return !x.parted && (n == 1 || h.Count != n || x.acked || h.Flags&api.FlagDone != 0)
}

// pull goes on to fetch what is left of a reply whose first packet has arrived.
func (x *exchange) pull() {
	if !x.guessed {
		x.up.confirmAll()
	}
	x.pulling = true
	if x.first.Count == 1 {
		x.finished = true
		return
	}
	x.down.start(int(x.first.Count), x.up.once)
	x.down.next, x.down.sends = 1, 1 // as if packet 0 had been pulled
	*x.down.at(0) = slot{state: slotConfirmed}
	x.down.base = 1
	if x.guessed {
		x.down.window = 1
	}
}

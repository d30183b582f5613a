package lambdanic

import (
	"fmt"
	"io"

	"github.com/lambdanic/lambdanic/api"
)

// A stream moves a call's request from a reader and its reply to a writer through two windows of packets.
type stream struct {
	in  streamSource
	out streamSink
}

func newStream(r io.Reader, size int, w io.Writer) *stream {
	return &stream{in: streamSource{r: r, left: size}, out: streamSink{w: w}}
}

// pumpPackets is how many packets are read or written before the next look at the network.
const pumpPackets = 64

func (s *stream) start(n int) bool {
	if s.in.filled == 0 {
		s.in.size = n
	}
	return s.in.size == n && s.in.filled <= maxWindow && s.out.start()
}

// pump runs in the caller's goroutine, which alone touches the source; the sink is shared with the socket's reader.
func (s *stream) pump(c *call) (more bool, err error) {
	c.mu.Lock()
	base, finished := c.x.up.base, c.x.finished
	c.mu.Unlock()
	if !finished {
		if more, err = s.in.fill(base); err != nil {
			return false, err
		}
	}
	for range pumpPackets {
		c.mu.Lock()
		p := s.out.ready()
		c.mu.Unlock()
		if p == nil {
			return more, nil
		}
		if _, err := s.out.w.Write(p); err != nil {
			return false, fmt.Errorf("write reply: %w", err)
		}
		c.mu.Lock()
		s.out.next++
		c.mu.Unlock()
	}
	return true, nil
}

// streamSource holds the packets of a request from the first unconfirmed one on.
type streamSource struct {
	r      io.Reader
	size   int // of a packet
	left   int // bytes not read yet
	filled int // packets read
	ring   [maxWindow][]byte
}

func (s *streamSource) fragment(i int) []byte { return s.ring[i%maxWindow] }

func (s *streamSource) limit() int {
	if s.left == 0 {
		return noLimit
	}
	return s.filled
}

// fill reads packets that the window has room for, and reports whether it has room for more.
func (s *streamSource) fill(base int) (more bool, err error) {
	for range pumpPackets {
		if s.left == 0 || s.filled >= base+maxWindow {
			return false, nil
		}
		p := s.ring[s.filled%maxWindow]
		if p == nil {
			p = make([]byte, s.size)
		}
		p = p[:min(s.size, s.left)]
		if _, err := io.ReadFull(s.r, p); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return false, fmt.Errorf("read request: %d bytes before its end: %w", s.left, err)
		}
		s.ring[s.filled%maxWindow] = p
		s.left -= len(p)
		s.filled++
	}
	return s.left > 0 && s.filled < base+maxWindow, nil
}

// streamSink holds the packets of a reply from the first unwritten one on.
type streamSink struct {
	w    io.Writer
	next int // packets written
	ring [maxWindow]arrived
}

type arrived struct {
	index int
	p     []byte
	full  bool
}

// start readies s for a new attempt, and reports whether nothing was written in an earlier one.
func (s *streamSink) start() bool {
	for i := range s.ring {
		s.ring[i].full = false
	}
	return s.next == 0
}

// begin forgets what arrived before. Its memory is not used again, for the caller may be writing it.
func (s *streamSink) begin(_, _ int) { s.ring = [maxWindow]arrived{} }

func (s *streamSink) put(index, _ int, p []byte) {
	slot := &s.ring[index%maxWindow]
	if slot.p == nil {
		slot.p = make([]byte, 0, api.RPCMaxPayload)
	}
	slot.index, slot.p, slot.full = index, append(slot.p[:0], p...), true
}

// ready returns the packet to write next, nil if it has not arrived.
func (s *streamSink) ready() []byte {
	slot := &s.ring[s.next%maxWindow]
	if !slot.full || slot.index != s.next {
		return nil
	}
	return slot.p
}

func (s *streamSink) limit() int { return s.next + maxWindow }

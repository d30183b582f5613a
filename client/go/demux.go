package lambdanic

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// A socket is one UDP socket of a Client, with the calls in flight on it and the goroutine that reads their answers.
type socket struct {
	conn   *net.UDPConn
	path   *path
	raw    syscall.RawConn
	off    offload
	clock  func() time.Duration
	tagger *tagger       // of its own, so that no other socket's packets come between its sequence numbers
	done   chan struct{} // closed when the reader has ended
	stats  counters

	mu     sync.Mutex
	calls  map[uint64]*call
	closed bool
	id     uint64
}

// receiveDatagrams is how many datagrams a reader takes per system call.
const receiveDatagrams = 8

func newSocket(conn *net.UDPConn, p *path, clock func() time.Duration, t *tagger) (*socket, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	if err := raw.Control(func(fd uintptr) { prepare(int(fd), true) }); err != nil {
		return nil, err
	}
	s := &socket{
		conn: conn, path: p, raw: raw, clock: clock, tagger: t, done: make(chan struct{}), calls: make(map[uint64]*call), id: firstID(),
	}
	s.off.ipv4 = p.ipv4
	go s.read()
	return s, nil
}

// measure reports whether packets have to be shorter than before.
func (s *socket) measure() (shorter bool) {
	_ = s.raw.Control(func(fd uintptr) { shorter = s.path.measure(int(fd)) })
	return shorter
}

func (s *socket) newID() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id++
	if s.id == 0 { // 0 means no call
		s.id++
	}
	return s.id
}

func (s *socket) add(id uint64, k *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.calls[id] = k
	return nil
}

func (s *socket) remove(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
}

func (s *socket) find(id uint64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// inFlight returns the calls whose answers are awaited.
func (s *socket) inFlight() []*call {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*call, 0, len(s.calls))
	for _, k := range s.calls {
		all = append(all, k)
	}
	return all
}

func (s *socket) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	for _, k := range s.inFlight() {
		k.mu.Lock()
		if !k.x.finished {
			k.x.fail(ErrClosed)
		}
		k.mu.Unlock()
		k.notify()
	}
	s.conn.Close()
	<-s.done
}

// send sends b for k. Packets that the network refuses count as lost.
func (s *socket) send(b *batch, k *call) error {
	if b.count == 0 {
		return nil
	}
	var err error
	if b.count == 1 {
		_, err = s.conn.Write(b.buf)
		if err != nil && refused(err) {
			s.networkSaid(err) // of an earlier packet
			_, err = s.conn.Write(b.buf)
		}
	} else {
		err = s.sendMany(b)
	}
	s.stats.sent.Add(uint64(b.count))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, net.ErrClosed):
		return ErrClosed
	case refused(err) || errors.Is(err, unix.ENOBUFS):
		if k != nil {
			k.mu.Lock()
			k.networkSaid(err)
			k.mu.Unlock()
		}
		return nil
	}
	return fmt.Errorf("send %d bytes: %w", b.size, err)
}

func (s *socket) sendMany(b *batch) error {
	from, tries := 0, 0
	var err error
	waitErr := s.raw.Write(func(fd uintptr) bool {
		for from < b.count {
			from, err = sendBatch(int(fd), b, from, &s.off)
			switch {
			case err == nil:
			case refused(err) && tries < 4:
				s.networkSaid(err)
				tries++
			default:
				return err != unix.EAGAIN
			}
		}
		return true
	})
	if waitErr != nil {
		return waitErr
	}
	if err != nil {
		return os.NewSyscallError("sendmsg", err)
	}
	return nil
}

// read hands arriving packets to their calls until the socket is closed.
func (s *socket) read() {
	defer close(s.done)
	r := newReceiver(receiveDatagrams)
	d := delivery{s: s}
	var n int
	var err error
	take := func(fd uintptr) bool {
		n, err = r.receive(int(fd), unix.MSG_DONTWAIT)
		return err != unix.EAGAIN
	}
	packet := d.packet
	for {
		if s.raw.Read(take) != nil {
			return
		}
		if err != nil {
			s.networkSaid(err)
			continue
		}
		d.now = s.clock()
		for i := range n {
			r.each(i, packet)
		}
		d.flush()
	}
}

// networkSaid passes an error on to the calls that may time out, or have to go elsewhere, because of it.
func (s *socket) networkSaid(err error) {
	for _, k := range s.inFlight() {
		k.mu.Lock()
		k.networkSaid(err)
		k.mu.Unlock()
		k.notify()
	}
}

// A delivery is the packets that arrived at one time. A caller is woken once for successive packets of its call.
type delivery struct {
	s    *socket
	now  time.Duration
	call *call // of the last packet, not woken yet
	id   uint64
}

func (d *delivery) packet(p []byte) {
	s := d.s
	s.stats.received.Add(1)
	h, payload, err := api.ParsePacket(p)
	if err != nil {
		s.stats.malformed.Add(1)
		return
	}
	if d.call == nil || h.Request != d.id {
		d.flush()
		if d.call, d.id = s.find(h.Request), h.Request; d.call == nil {
			s.stats.stray.Add(1)
			return
		}
	}
	k := d.call
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.x.head.Request != h.Request {
		s.stats.stray.Add(1)
		return
	}
	k.x.receive(d.now, &h, payload)
}

// flush wakes the caller that the last packets were for.
func (d *delivery) flush() {
	if d.call != nil {
		d.call.notify()
		d.call = nil
	}
}

// counters are Stats for several goroutines.
type counters struct {
	calls, restarts, sent, resent, received, duplicates, stray, malformed atomic.Uint64
}

func (c *counters) account(x *exchange) {
	c.calls.Add(1)
	c.resent.Add(x.resent)
	c.duplicates.Add(x.duplicates)
	c.malformed.Add(x.malformed)
}

func (c *counters) addTo(s *Stats) {
	s.Calls += c.calls.Load()
	s.Restarts += c.restarts.Load()
	s.Sent += c.sent.Load()
	s.Resent += c.resent.Load()
	s.Received += c.received.Load()
	s.Duplicates += c.duplicates.Load()
	s.Stray += c.stray.Load()
	s.Malformed += c.malformed.Load()
}

package roce

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdanic/lambdanic/api/roce"
)

// Connection is what the two ends of a queue pair have to agree on beforehand.
type Connection struct {
	Service  roce.Service
	Remote   netip.Addr
	LocalQP  uint32 // 24 bits
	RemoteQP uint32
	PSN      uint32 // of the first packet
	MTU      int    // bytes of payload in a packet: 256, 512, 1024, 2048 or 4096
	Window   int    // packets under way at once; 0: 128
	Retries  int    // of a packet that nothing answers; 0: 7
}

// Region is remote memory.
type Region struct {
	VA   uint64
	RKey uint32
}

// Errors of a queue pair. After any but ErrBusy, the queue pair is unusable.
var (
	ErrNoAnswer = errors.New("the other side does not answer")
	ErrBroken   = errors.New("the queue pair failed before: set it up anew on both sides")
	ErrTooLong  = errors.New("more than a message may have (2 GiB)")
)

// NAKError says that the other side refused a message.
type NAKError struct{ Syndrome roce.Syndrome }

func (e *NAKError) Error() string {
	what := map[roce.Syndrome]string{
		roce.SyndromeInvalidRequest: "invalid request", roce.SyndromeAccess: "remote access error", roce.SyndromeOperation: "remote operational error",
	}[e.Syndrome]
	if what == "" {
		what = fmt.Sprintf("syndrome %#x", uint8(e.Syndrome))
	}
	return "refused: " + what
}

// Stats counts a queue pair's packets.
type Stats struct{ Packets, Resent, Timeouts, NAKs uint64 }

// QueuePair is the requester's half of a connection. Its methods may be called concurrently; messages go one behind the other.
type QueuePair struct {
	e      *Endpoint
	c      Connection
	path   Path
	acks   chan Packet
	closed chan struct{}

	mu    sync.Mutex
	psn   uint32
	err   error
	batch *batch
	stats struct{ packets, resent, timeouts, naks atomic.Uint64 }
}

// Time-outs are those of a λ-RPC client: nothing measures round trips here.
const (
	firstTimeout = 20 * time.Millisecond
	lastTimeout  = 500 * time.Millisecond
)

func newQueuePair(e *Endpoint, c Connection) *QueuePair {
	if c.Window == 0 {
		c.Window = 128
	}
	if c.Retries == 0 {
		c.Retries = 7
	}
	to := netip.AddrPortFrom(c.Remote, roce.Port)
	return &QueuePair{
		e: e, c: c, path: Path{From: e.addr, To: to}, acks: make(chan Packet, c.Window), closed: make(chan struct{}),
		psn: c.PSN & roce.NumMask, batch: newBatch(to),
	}
}

// Close takes the queue pair off its endpoint. The other side's remains.
func (q *QueuePair) Close() { q.e.forget(q) }

// Stats returns the counters.
func (q *QueuePair) Stats() Stats {
	return Stats{q.stats.packets.Load(), q.stats.resent.Load(), q.stats.timeouts.Load(), q.stats.naks.Load()}
}

// deliver drops a packet that it has no room for: a later acknowledgement covers it.
func (q *QueuePair) deliver(p Packet) {
	select {
	case q.acks <- p:
	default:
	}
}

// Write writes data to remote memory. RC returns when all of it was acknowledged, UC when it was sent.
func (q *QueuePair) Write(ctx context.Context, to Region, data []byte) error {
	return q.exchange(ctx, message{ops: [4]roce.Op{roce.OpWriteFirst, roce.OpWriteMiddle, roce.OpWriteLast, roce.OpWriteOnly}, to: to, data: data})
}

// WriteImm does the same, and notifies the other side with a number.
func (q *QueuePair) WriteImm(ctx context.Context, to Region, data []byte, imm uint32) error {
	return q.exchange(ctx, message{ops: [4]roce.Op{roce.OpWriteFirst, roce.OpWriteMiddle, roce.OpWriteLastImm, roce.OpWriteOnlyImm}, to: to, data: data, imm: imm})
}

// Send sends data; the other side chooses where it goes.
func (q *QueuePair) Send(ctx context.Context, data []byte) error {
	return q.exchange(ctx, message{ops: [4]roce.Op{roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLast, roce.OpSendOnly}, data: data})
}

// SendImm does the same with a number.
func (q *QueuePair) SendImm(ctx context.Context, data []byte, imm uint32) error {
	return q.exchange(ctx, message{ops: [4]roce.Op{roce.OpSendFirst, roce.OpSendMiddle, roce.OpSendLastImm, roce.OpSendOnlyImm}, data: data, imm: imm})
}

// A message is sent in packets.
type message struct {
	ops  [4]roce.Op // first, middle, last, only
	to   Region
	data []byte
	imm  uint32
}

func (m *message) packets(mtu int) int { return max(1, (len(m.data)+mtu-1)/mtu) }

// packet is number i of n.
func (m *message) packet(i, n, mtu int) Packet {
	p := Packet{VA: m.to.VA, RKey: m.to.RKey, DMALen: uint32(len(m.data)), Imm: m.imm, Payload: m.data[i*mtu : min((i+1)*mtu, len(m.data))]}
	switch {
	case n == 1:
		p.Op = m.ops[3]
	case i == 0:
		p.Op = m.ops[0]
	case i < n-1:
		p.Op = m.ops[1]
	default:
		p.Op = m.ops[2]
	}
	return p
}

func (q *QueuePair) exchange(ctx context.Context, m message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(m.data) > 1<<31 {
		return fmt.Errorf("%d bytes: %w", len(m.data), ErrTooLong)
	}
	if q.err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, q.err)
	}
	n := m.packets(q.c.MTU)
	var err error
	if q.c.Service == roce.ServiceUC {
		err = q.transmit(&m, n, 0, n)
	} else {
		err = q.reliably(ctx, &m, n)
	}
	if err != nil {
		q.err = err
		return fmt.Errorf("RDMA to %v, queue pair %#x: %w", q.c.Remote, q.c.RemoteQP, err)
	}
	q.psn = (q.psn + uint32(n)) & roce.NumMask
	return nil
}

// transmit sends packets [from, to) of n. The last of each half of a window asks for an acknowledgement.
func (q *QueuePair) transmit(m *message, n, from, to int) error {
	for i := from; i < to; {
		q.batch.reset()
		for ; i < to && !q.batch.full(); i++ {
			p := m.packet(i, n, q.c.MTU)
			p.Service, p.DestQP, p.PSN = q.c.Service, q.c.RemoteQP, q.psn+uint32(i)
			p.AckReq = q.c.Service == roce.ServiceRC && (i == n-1 || i == to-1 || i%(q.c.Window/4+1) == 0)
			q.batch.add(&p, q.path, q.e.Through == nil && !q.e.single.Load())
		}
		q.stats.packets.Add(uint64(q.batch.n))
		if err := q.batch.send(q.e); err != nil {
			return err
		}
	}
	return nil
}

// reliably sends a whole message, and sends again everything from the first missing packet on (InfiniBand specification, 9.7.5).
func (q *QueuePair) reliably(ctx context.Context, m *message, n int) error {
	acked, next, retries := 0, 0, 0
	timeout := firstTimeout
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for acked < n {
		if to := min(n, acked+q.c.Window); to-next >= min(batchPackets, n-next) && to > next {
			if err := q.transmit(m, n, next, to); err != nil {
				return err
			}
			next = to
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-q.closed:
			return net.ErrClosed
		case p := <-q.acks:
			progress, again, err := q.acknowledged(p, acked, next)
			if err != nil {
				return err
			}
			if progress > acked {
				acked, retries, timeout = progress, 0, firstTimeout
				timer.Reset(timeout)
			}
			if again {
				q.stats.resent.Add(uint64(next - acked))
				next = acked
			}
		case <-timer.C:
			if retries++; retries > q.c.Retries {
				return ErrNoAnswer
			}
			q.stats.timeouts.Add(1)
			if retries > 1 {
				q.e.single.Store(true) // perhaps whatever splits the packets numbers them wrongly
			}
			q.stats.resent.Add(uint64(next - acked))
			next, timeout = acked, min(2*timeout, lastTimeout)
			timer.Reset(timeout)
		}
	}
	return nil
}

// acknowledged reads an acknowledgement: how many packets are acknowledged now, and whether to send again from there.
func (q *QueuePair) acknowledged(p Packet, acked, next int) (progress int, again bool, err error) {
	at := int((p.PSN - q.psn) & roce.NumMask) // in this message
	if at >= next || at < acked-1 {
		return acked, false, nil // of another message, or late
	}
	switch p.Syndrome & 0xe0 {
	case 0:
		return at + 1, false, nil
	case roce.SyndromeRNR:
		q.stats.naks.Add(1)
		return max(acked, at), false, nil // the timer sends it again
	}
	q.stats.naks.Add(1)
	if p.Syndrome == roce.SyndromeSequence {
		return max(acked, at), true, nil
	}
	return acked, false, &NAKError{p.Syndrome}
}

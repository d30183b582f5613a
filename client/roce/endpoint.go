package roce

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api/roce"
)

// An Endpoint is RoCEv2's port on one local address. Its queue pairs share it, as acknowledgements come in on that port alone. It
// cannot open on a host whose kernel speaks RoCE itself (rdma_rxe).
type Endpoint struct {
	// Through, where set before the first message, gets every packet that is sent: what it hands to deliver goes out. Tests
	// of loss set it.
	Through func(packet []byte, deliver func([]byte))

	conn   *net.UDPConn
	raw    syscall.RawConn
	addr   netip.AddrPort
	single atomic.Bool // each datagram goes to the kernel by itself

	mu    sync.Mutex
	pairs map[uint32]*QueuePair // by their own numbers
}

// Listen opens the port on a local address.
func Listen(addr netip.Addr) (*Endpoint, error) {
	addr = addr.Unmap()
	e := &Endpoint{addr: netip.AddrPortFrom(addr, roce.Port), pairs: map[uint32]*QueuePair{}}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(e.addr))
	if err != nil {
		return nil, fmt.Errorf("open RoCEv2's port: %w", err)
	}
	e.conn = conn
	if e.raw, err = conn.SyscallConn(); err == nil {
		err = e.neverCut()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare RoCEv2's port: %w", err), conn.Close())
	}
	_ = conn.SetReadBuffer(4 << 20) // as much of it as the system allows
	_ = conn.SetWriteBuffer(4 << 20)
	go e.receive()
	return e, nil
}

// neverCut sets "don't fragment": then an IPv4 header's identification, which the ICRC covers and a socket does not show, is 0
// (ip_select_ident_segs() in the kernel's include/net/ip.h).
func (e *Endpoint) neverCut() error {
	if !e.addr.Addr().Is4() {
		return nil
	}
	var err error
	failed := e.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
	})
	return errors.Join(failed, err)
}

// Addr is where the endpoint listens.
func (e *Endpoint) Addr() netip.AddrPort { return e.addr }

// Close closes the port. Messages under way on its queue pairs fail.
func (e *Endpoint) Close() error { return e.conn.Close() }

// receive hands each whole acknowledgement to its queue pair.
func (e *Endpoint) receive() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := e.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			e.mu.Lock()
			for _, q := range e.pairs {
				close(q.closed)
			}
			clear(e.pairs)
			e.mu.Unlock()
			return
		}
		if err != nil {
			continue // an ICMP message was reported
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		p, err := Parse(buf[:n])
		if err != nil || p.Op != roce.OpAck || !(Path{From: from, To: e.addr}).Check(buf[:n]) {
			continue
		}
		e.mu.Lock()
		q := e.pairs[p.DestQP]
		e.mu.Unlock()
		if q != nil && from.Addr() == q.c.Remote {
			q.deliver(p)
		}
	}
}

// Connect makes a queue pair of c.
func (e *Endpoint) Connect(c Connection) (*QueuePair, error) {
	c.Remote = c.Remote.Unmap()
	if c.Service != roce.ServiceRC && c.Service != roce.ServiceUC {
		return nil, fmt.Errorf("service %#x is neither RC nor UC", uint8(c.Service))
	}
	if c.MTU < roce.MinMTU || c.MTU > roce.MaxMTU || c.MTU&(c.MTU-1) != 0 {
		return nil, fmt.Errorf("MTU %d is not 256, 512, 1024, 2048 or 4096", c.MTU)
	}
	if c.Remote.Is4() != e.addr.Addr().Is4() {
		return nil, fmt.Errorf("%v and %v are not of one family", c.Remote, e.addr.Addr())
	}
	q := newQueuePair(e, c)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pairs[c.LocalQP] != nil {
		return nil, fmt.Errorf("queue pair %#x exists already: give each a number of its own", c.LocalQP)
	}
	e.pairs[c.LocalQP] = q
	return q, nil
}

// forget takes a queue pair off the endpoint.
func (e *Endpoint) forget(q *QueuePair) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pairs[q.c.LocalQP] == q {
		delete(e.pairs, q.c.LocalQP)
	}
}

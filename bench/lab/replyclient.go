package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/bench/measure"
	"github.com/lambdanic/lambdanic/bench/multiply"
)

// A replyClient requests replies of many packets on a socket, and spins until it has them.
type replyClient struct {
	fd      int
	asks    [][]byte // the packets that it sends
	packets int      // of the reply
	request uint64
	buf     [2048]byte
}

// receiveFor asks for one reply after the other, until the time is over, and checks that each is whole.
func receiveFor(server netip.AddrPort, w replyWay, packets int, d time.Duration) (measure.Latency, error) {
	c, err := newReplyClient(server, w, packets)
	if err != nil {
		return measure.Latency{}, err
	}
	defer func() { _ = unix.Close(c.fd) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := measure.Latency{Histogram: measure.NewHistogram()}
	start := time.Now()
	for before := start; l.Elapsed < d; {
		if err := c.receiveReply(); err != nil {
			return measure.Latency{}, err
		}
		now := time.Now()
		if err := l.Histogram.RecordValue(now.Sub(before).Nanoseconds()); err != nil {
			return measure.Latency{}, fmt.Errorf("record a latency of %v: %w", now.Sub(before), err)
		}
		before, l.Elapsed = now, now.Sub(start)
	}
	return l, nil
}

// newReplyClient pads its packets to the size of the reply's packets, even where the whole reply answers one request:
// a packet of a local socket has no memory behind its end, and cannot grow.
func newReplyClient(server netip.AddrPort, w replyWay, packets int) (*replyClient, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(server.Port()), Addr: server.Addr().As4()}); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", server, err), unix.Close(fd))
	}
	c := &replyClient{fd: fd, packets: packets}
	for i, r := range w.load(packets).Requests {
		h := r.Header
		if i == 0 {
			h.Type, h.Count = api.TypeRequest, 1
		}
		c.asks = append(c.asks, append(h.Append(nil), make([]byte, multiply.Size)...))
	}
	return c, nil
}

// receiveReply sends the first packet, and the others, if any, once the first of the reply has said how many there are.
func (c *replyClient) receiveReply() error {
	c.request++
	var seen uint64
	if err := c.send(c.asks[:1]); err != nil {
		return err
	}
	if err := c.receive(&seen); err != nil {
		return err
	}
	if err := c.send(c.asks[1:]); err != nil {
		return err
	}
	for seen != 1<<c.packets-1 {
		if err := c.receive(&seen); err != nil {
			return err
		}
	}
	return nil
}

func (c *replyClient) send(packets [][]byte) error {
	for _, p := range packets {
		binary.BigEndian.PutUint64(p[16:], c.request)
		if _, err := unix.Write(c.fd, p); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// receive takes one packet of the reply in.
func (c *replyClient) receive(seen *uint64) error {
	var n int
	var err error
	for deadline := time.Now().Add(10 * time.Second); ; {
		n, _, err = unix.Recvfrom(c.fd, c.buf[:], unix.MSG_DONTWAIT)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for %d packets, of which came %#b: %w", c.packets, *seen, unix.ETIMEDOUT)
		}
	}
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	h, payload, err := api.ParsePacket(c.buf[:n])
	if err != nil {
		return err
	}
	bit := uint64(1) << (h.Index & 63)
	if h.Type != api.TypeResponse || h.Request != c.request || int(h.Index) >= c.packets || *seen&bit != 0 ||
		int(h.Count) != c.packets || len(payload) != multiply.Size {
		return fmt.Errorf("%w: %+v with %d bytes", measure.ErrWrong, h, len(payload))
	}
	*seen |= bit
	return nil
}

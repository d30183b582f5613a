package lambdanic

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// A Conn makes one call at a time, on the thread of its caller: it sends, and then receives in the same goroutine, by
// system calls that bypass Go's poller. It is not safe for concurrent use. Only the context's deadline ends a waiting call
// at once; a cancellation is noticed within 20 ms.
type Conn struct {
	session
	file  *os.File
	fd    int
	id    uint64
	wait  time.Duration // what the socket's receive time-out is set to
	off   offload
	one   []byte    // a datagram
	many  *receiver // in use since the first call of several packets
	out   batch
	x     exchange
	body  bytesSource
	reply bytesSink
	last  error // what the network said during this call
	stats Stats
}

// DialConn connects to addr: HOST, HOST:PORT or [IPv6]:PORT. Nothing is sent.
func DialConn(addr string, opts ...Option) (*Conn, error) {
	c := &Conn{session: session{options: defaults(opts), epoch: time.Now()}, id: firstID(), one: make([]byte, 4096)}
	if err := c.options.check(); err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	udp, err := c.connect(addr)
	if err != nil {
		return nil, err
	}
	defer udp.Close()
	if c.file, err = udp.File(); err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	c.fd = int(c.file.Fd())
	if err := unix.SetNonblock(c.fd, false); err != nil {
		c.file.Close()
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	prepare(c.fd, false)
	c.off.ipv4 = c.path.ipv4
	c.x.max, c.x.tagger = c.maxReply, c.tagger
	return c, nil
}

// Close closes the socket.
func (c *Conn) Close() error { return c.file.Close() }

// Stats returns the counters since DialConn.
func (c *Conn) Stats() Stats { return c.stats }

// Call sends req and returns the answer. Its body is valid until the next call.
func (c *Conn) Call(ctx context.Context, req Request) (Response, error) {
	if err := req.check(ctx); err != nil {
		return Response{}, err
	}
	deadline, idle := c.deadlineOf(ctx)
	c.x.reserve = req.Reserve
	room := c.roomFor(&req)
	resends := 0
	for attempt := 0; ; attempt++ {
		head, size, err := c.header(&req, len(req.Body), deadline-c.clock())
		if err != nil {
			return Response{}, err
		}
		c.body = bytesSource{body: req.Body, fragSize: size}
		c.id++
		head.Request = c.id
		c.x.start(c.clock(), due(deadline, idle), head, padded(&head, room, size), c.once, &c.body, &c.reply)
		err = c.run(ctx, deadline, idle)
		c.account()
		resends += int(c.x.resent)
		if err == nil {
			break
		}
		if !c.again(err, &head, attempt, &room, func() bool { return c.path.measure(c.fd) }) {
			return Response{}, fmt.Errorf("call workload %#x: %w", req.Workload, err)
		}
		c.stats.Restarts++
	}
	c.learn(&req, len(c.reply.buf))
	return Response{
		Status: api.Status(c.x.first.Code), Revision: c.x.first.Revision,
		Body: c.reply.buf, Length: len(c.reply.buf), Resends: resends,
	}, nil
}

func (c *Conn) account() {
	c.stats.Calls++
	c.stats.Resent += c.x.resent
	c.stats.Duplicates += c.x.duplicates
	c.stats.Malformed += c.x.malformed
}

// run drives the exchange to its end.
func (c *Conn) run(ctx context.Context, deadline time.Duration, idle bool) error {
	c.last = nil
	if c.x.head.Count > 1 {
		c.receiveMany()
	}
	now := c.clock()
	for {
		wake := c.x.poll(now, &c.out)
		if err := c.send(); err != nil {
			return err
		}
		if c.out.full() {
			wake = now // there may be more to send: only look at what arrived
		}
		if err := c.receive(now, min(wake, deadline, now+firstInterval)); err != nil {
			return err
		}
		if c.x.finished {
			return c.end(c.x.err)
		}
		now = c.clock()
		if idle {
			deadline = c.x.moved + c.timeout
		}
		if now >= deadline || ctx.Err() != nil {
			return c.end(giveUp(ctx, cmp.Or(c.last, c.x.told)))
		}
	}
}

// end lets the server forget the message, and returns err, or why that could not be sent.
func (c *Conn) end(err error) error {
	c.x.release(&c.out)
	if sendErr := c.send(); err == nil {
		err = sendErr
	}
	return err
}

// send sends the batch.
func (c *Conn) send() error {
	for from, tries := 0, 0; from < c.out.count; {
		n, err := sendBatch(c.fd, &c.out, from, &c.off)
		c.stats.Sent += uint64(n - from)
		from = n
		switch {
		case err == nil:
		case refused(err) && tries < 4:
			c.last = err
			tries++
		case err == unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}, 20)
		case refused(err) || err == unix.ENOBUFS:
			c.last = err
			return nil // it counts as lost on the way
		default:
			return fmt.Errorf("send %d bytes: %w", c.out.size, err)
		}
	}
	return nil
}

// receiveMany makes the kernel join packets, and takes many at once from now on.
func (c *Conn) receiveMany() {
	if c.many == nil {
		c.many = newReceiver(16)
		prepare(c.fd, true)
	}
}

// receive takes in what arrives, and waits for it until wake.
func (c *Conn) receive(now, wake time.Duration) error {
	for {
		flags := unix.MSG_DONTWAIT
		if wake > now && !c.spin {
			c.setWait(wake - now)
			flags = unix.MSG_WAITFORONE
		}
		n, err := c.take(flags)
		switch {
		case err == nil && n > 0:
			return nil
		case err == unix.EAGAIN && (flags != unix.MSG_DONTWAIT || wake <= now):
			return nil
		case err == unix.EAGAIN:
			now = c.clock()
		case refused(err):
			c.last = err
			now = c.clock()
		default:
			return fmt.Errorf("receive: %w", err)
		}
	}
}

// take makes one system call and hands over what it brought.
func (c *Conn) take(flags int) (n int, err error) {
	if c.many == nil {
		if n, err = receiveOne(c.fd, c.one, flags&unix.MSG_DONTWAIT); err == nil {
			c.packet(c.one[:n])
			n = 1
		}
		return n, err
	}
	n, err = c.many.receive(c.fd, flags)
	for i := range n {
		c.many.each(i, c.packet)
	}
	return n, err
}

// setWait sets how long a receive may sleep. It is nearly always the same time, so this is rarely a system call.
func (c *Conn) setWait(d time.Duration) {
	d = max(d.Truncate(time.Millisecond), time.Millisecond)
	if d == c.wait || d > firstInterval-2*time.Millisecond && c.wait == firstInterval {
		return
	}
	d = min(d, firstInterval)
	tv := unix.NsecToTimeval(int64(d))
	if unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv) == nil {
		c.wait = d
	}
}

func (c *Conn) packet(p []byte) {
	c.stats.Received++
	h, payload, err := api.ParsePacket(p)
	switch {
	case err != nil:
		c.stats.Malformed++
	case h.Request != c.x.head.Request:
		c.stats.Stray++
	default:
		c.x.receive(c.clock(), &h, payload)
	}
}

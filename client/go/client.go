package lambdanic

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// A Client makes calls for any number of goroutines. Calls share its sockets; request IDs tell them apart.
type Client struct {
	session
	sockets []*socket
	turn    atomic.Uint32
}

// Dial connects to addr: HOST, HOST:PORT or [IPv6]:PORT. Nothing is sent.
func Dial(addr string, opts ...Option) (*Client, error) {
	c := &Client{session: session{options: defaults(opts), epoch: time.Now()}}
	if err := c.options.check(); err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	for range c.options.sockets {
		conn, err := c.connect(addr)
		if err != nil {
			c.Close()
			return nil, err
		}
		s, err := newSocket(conn, &c.path, c.clock, c.tagger.another())
		if err != nil {
			conn.Close()
			c.Close()
			return nil, fmt.Errorf("dial %s: %w", addr, err)
		}
		c.sockets = append(c.sockets, s)
	}
	return c, nil
}

// Close ends the calls in flight with ErrClosed, and closes the sockets.
func (c *Client) Close() error {
	for _, s := range c.sockets {
		s.close()
	}
	return nil
}

// Stats returns the counters since Dial.
func (c *Client) Stats() Stats {
	var sum Stats
	for _, s := range c.sockets {
		s.stats.addTo(&sum)
	}
	return sum
}

// RemoteAddr returns the address that calls go to.
func (c *Client) RemoteAddr() net.Addr { return c.sockets[0].conn.RemoteAddr() }

// Call sends req and returns the answer.
func (c *Client) Call(ctx context.Context, req Request) (Response, error) {
	if err := req.check(ctx); err != nil {
		return Response{}, err
	}
	return c.callAt(ctx, &req, nil)
}

// callAt is Call for a function that may move meanwhile; then the error is errMoved.
func (c *Client) callAt(ctx context.Context, req *Request, at *whereabouts) (Response, error) {
	var reply bytesSink
	body := &bytesSource{body: req.Body}
	r, err := c.call(ctx, req, len(req.Body), body, &reply, memoryIO{body}, at)
	if err != nil {
		return Response{}, err
	}
	r.Body = reply.buf
	return r, nil
}

// CallStream is Call with size bytes of body as the request, in place of req.Body, and the reply written to w, in order.
// Neither is held in memory: only a window of packets is, some 700 KB of each. A call whose revision went away can only
// start over while the window still holds all of the request and nothing was written; otherwise the error is ErrStale.
// While body or w block, so does the call: a context cannot interrupt them.
// Where the lambda fails on a later packet, w may have a portion of a reply already; Length is then only that of the
// failure's answer.
func (c *Client) CallStream(ctx context.Context, req Request, body io.Reader, size int, w io.Writer) (Response, error) {
	if err := checkStream(ctx, &req, body, size, w); err != nil {
		return Response{}, err
	}
	s := newStream(body, size, w)
	req.Reserve = nil
	r, err := c.call(ctx, &req, size, &s.in, &s.out, s, nil)
	if err != nil {
		return Response{}, err
	}
	return r, nil
}

// An ioPump moves bytes between the user and the windows of a call, between its packets.
type ioPump interface {
	// start readies the source for packets of n bytes, and reports whether it can (again) offer them all.
	start(n int) bool
	// pump moves as much as it can without waiting for a packet. It reports whether there is more to send now.
	pump(c *call) (more bool, err error)
}

type memoryIO struct{ body *bytesSource }

func (m memoryIO) start(n int) bool                  { m.body.fragSize = n; return true }
func (m memoryIO) pump(*call) (more bool, err error) { return false, nil }

func (c *Client) call(ctx context.Context, req *Request, n int, body source, reply sink, pump ioPump, at *whereabouts) (Response, error) {
	deadline, idle := c.deadlineOf(ctx)
	s := c.sockets[int(c.turn.Add(1))%len(c.sockets)]
	k := newCall()
	defer k.free()
	k.x.max, k.x.reserve, k.x.tagger = c.maxReply, req.Reserve, s.tagger
	room, resends := c.roomFor(req), 0
	var last error // of the attempt before
	for attempt := 0; ; attempt++ {
		head, size, err := c.header(req, n, deadline-c.clock())
		if err != nil {
			return Response{}, err
		}
		if !pump.start(size) {
			return Response{}, fmt.Errorf("call workload %#x: %w", req.Workload, last)
		}
		last = k.attempt(ctx, s, &c.session, deadline, idle, pump, at, func(id uint64) {
			head.Request = id
			k.x.start(c.clock(), due(deadline, idle), head, padded(&head, room, size), c.once, body, reply)
			at.begin(&k.x, c.epoch)
		})
		resends += int(k.x.resent)
		at.end(&k.x, c.epoch, last)
		if last == nil {
			break
		}
		if !c.again(last, &head, attempt, &room, s.measure) {
			return Response{}, fmt.Errorf("call workload %#x: %w", req.Workload, last)
		}
		s.stats.restarts.Add(1)
	}
	first := &k.x.first
	c.learn(req, int(first.MessageLen))
	return Response{Status: api.Status(first.Code), Revision: first.Revision, Length: int(first.MessageLen), Resends: resends}, nil
}

// A call is an exchange that two goroutines work on: the caller sends and waits, the socket's reader takes packets in.
type call struct {
	mu   sync.Mutex
	x    exchange
	last error // what the network said

	refused bool // the network refused a packet, and the refusal is not yet handled

	wake  chan struct{} // something arrived that the caller must act on
	timer *time.Timer
	out   batch
}

var calls = sync.Pool{New: func() any {
	k := &call{wake: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	k.timer.Stop()
	return k
}}

func newCall() *call { return calls.Get().(*call) }

// free gives k's memory back. The socket's reader may still hold k, but it compares request IDs under the lock.
func (k *call) free() {
	k.timer.Stop()
	k.mu.Lock()
	k.x.head.Request, k.x.body, k.x.reply, k.x.reserve, k.x.finished, k.x.err = 0, nil, nil, nil, true, nil
	k.mu.Unlock()
	calls.Put(k)
}

// attempt drives one exchange to its end.
func (k *call) attempt(ctx context.Context, s *socket, c *session, deadline time.Duration, idle bool, pump ioPump, at *whereabouts, start func(id uint64)) error {
	select {
	case <-k.wake: // from an earlier attempt
	default:
	}
	k.mu.Lock()
	start(s.newID())
	id := k.x.head.Request
	k.last, k.refused = nil, false
	k.mu.Unlock()
	if err := s.add(id, k); err != nil {
		return err
	}
	err := k.drive(ctx, s, c, deadline, idle, pump, at)
	s.remove(id)

	k.mu.Lock()
	k.x.release(&k.out)
	s.stats.account(&k.x)
	k.mu.Unlock()
	if sendErr := s.send(&k.out, nil); err == nil {
		err = sendErr
	}
	return err
}

func (k *call) drive(ctx context.Context, s *socket, c *session, deadline time.Duration, idle bool, pump ioPump, at *whereabouts) error {
	for {
		before := c.clock()
		more, err := pump.pump(k)
		if err != nil {
			return err
		}
		now := c.clock()
		k.mu.Lock()
		k.x.moved += now - before // the server is not to blame for a slow reader or writer
		if idle {
			deadline = k.x.moved + c.timeout
		}
		late, wake := now >= deadline || ctx.Err() != nil, never
		if !late { // else a caller that wakes late would send once more
			wake = k.x.poll(now, &k.out)
		}
		finished, err, last := k.x.finished, k.x.err, cmp.Or(k.last, k.x.told)
		k.mu.Unlock()
		if finished {
			if more, perr := pump.pump(k); more || perr != nil {
				if perr != nil {
					return perr
				}
				continue
			}
			return err
		}
		if late {
			return giveUp(ctx, last)
		}
		if err := s.send(&k.out, k); err != nil {
			return err
		}
		if k.out.full() || more {
			continue
		}
		if k.asks(at) && at.ask() {
			return errMoved
		}
		k.timer.Reset(min(wake, deadline) - now)
		select {
		case <-k.wake:
		case answer := <-at.answers():
			if at.take(answer) {
				return errMoved
			}
		case <-k.timer.C:
		case <-ctx.Done():
		}
	}
}

// networkSaid notes a network error that may concern one of the call's packets. k.mu is held.
func (k *call) networkSaid(err error) {
	k.last, k.refused = err, k.refused || refused(err)
}

// asks reports whether it is time to ask where the function is.
func (k *call) asks(at *whereabouts) bool {
	if at == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	refused := k.refused
	k.refused = false
	return k.x.asks(refused)
}

// notify wakes the caller.
func (k *call) notify() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

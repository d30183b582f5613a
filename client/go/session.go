package lambdanic

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// A session is what Client and Conn have in common: how to turn a request into an exchange, and when to try another.
type session struct {
	options
	path  path
	epoch time.Time
	rooms rooms
}

// maxAttempts bounds how often a call starts over because its revision went away while it ran.
const maxAttempts = 8

// clock is the time that exchanges are told.
func (s *session) clock() time.Duration { return time.Since(s.epoch) }

// connect makes a socket that only hears addr: HOST, HOST:PORT or [IPv6]:PORT.
func (s *session) connect(addr string) (*net.UDPConn, error) {
	to, err := net.ResolveUDPAddr("udp", withPort(addr))
	if err == nil && to.IP == nil {
		err = errors.New("no host: give HOST, HOST:PORT or [IPv6]:PORT")
	}
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	conn, err := net.DialUDP("udp", nil, to)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	if err := s.path.open(conn); err != nil {
		conn.Close()
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return conn, nil
}

// withPort adds λ-RPC's port to an address that has none.
func withPort(addr string) string {
	if host, ok := strings.CutPrefix(addr, "["); ok {
		if host, ok = strings.CutSuffix(host, "]"); ok {
			addr = host
		}
	}
	if _, _, err := net.SplitHostPort(addr); err != nil && !strings.ContainsAny(addr, "[]") {
		return net.JoinHostPort(addr, strconv.Itoa(api.RPCPort))
	}
	return addr
}

// firstID draws a random start for a socket's request IDs: others cannot guess them, and IDs of earlier sockets are not repeated.
func firstID() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, as documented
	return be.Uint64(b[:])
}

// header makes the header of a request's packets, but for its ID. size is how many bytes each holds.
func (s *session) header(req *Request, n int, deadline time.Duration) (head api.Header, size int, err error) {
	count, size := packets(n, s.path.room(), s.path.fragment())
	var flags api.Flag
	if req.Once {
		flags = api.FlagOnce
	}
	if n > int(api.MaxMessage) {
		return head, 0, fmt.Errorf("%w: %d bytes exceed %d", ErrRequestTooLarge, n, api.MaxMessage)
	}
	return api.Header{
		Type: api.TypeRequest, Flags: flags, Workload: req.Workload, Method: req.Method, Count: uint32(count), MessageLen: uint32(n),
		DeadlineUS: deadlineUS(deadline),
	}, size, nil
}

// due is when an exchange finally gives up.
func due(deadline time.Duration, idle bool) time.Duration {
	if idle {
		return never
	}
	return deadline
}

// deadlineOf is how long a call may take: until ctx ends, or else as long as a packet gets through every s.timeout.
func (s *session) deadlineOf(ctx context.Context) (d time.Duration, idle bool) {
	if t, ok := ctx.Deadline(); ok {
		return t.Sub(s.epoch), false
	}
	return s.clock() + s.timeout, true
}

// padded is the padded length of a request's packets: all packets of a longer request are equally long.
func padded(head *api.Header, room, size int) int {
	if head.Count > 1 {
		return size
	}
	return room
}

// again decides whether a call that ended with err starts over, and with how much room. shorter reports whether the path to the server
// turned out to take shorter packets only.
func (s *session) again(err error, head *api.Header, attempt int, room *int, shorter func() bool) bool {
	if attempt >= maxAttempts || head.Flags&api.FlagOnce != 0 || errors.Is(err, ErrDeadlineExceeded) { // at the deadline, err may also have what anybody said
		return false
	}
	if tooLong(err) && shorter() {
		*room = min(*room, s.path.room())
		return true
	}
	var e *RPCError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case api.CodeStale:
		return true
	case api.CodeTooLarge:
		if head.Count == 1 && e.Need > *room && e.Need <= s.path.room() {
			*room = e.Need
			return true
		}
	}
	return false
}

// rooms remembers how long the replies of each method were.
type rooms struct {
	mu    sync.RWMutex
	known map[[2]uint32]int
}

// maxRooms bounds the memory of a client that uses ever new methods.
const maxRooms = 4096

func (s *session) roomFor(req *Request) int {
	room := req.ReplyRoom
	if req.Once {
		room = s.path.room() // a longer reply would make the lambda run again
	}
	if room == 0 {
		s.rooms.mu.RLock()
		room = s.rooms.known[[2]uint32{req.Workload, req.Method}]
		s.rooms.mu.RUnlock()
		room = max(room, s.room)
	}
	return min(room, s.path.room())
}

func (s *session) learn(req *Request, reply int) {
	if req.ReplyRoom != 0 || reply <= s.room {
		return
	}
	reply = min(reply, s.path.room())
	key := [2]uint32{req.Workload, req.Method}
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	if s.rooms.known[key] >= reply {
		return
	}
	if s.rooms.known == nil || len(s.rooms.known) >= maxRooms {
		s.rooms.known = make(map[[2]uint32]int)
	}
	s.rooms.known[key] = reply
}

// giveUp is the error of a call whose time is over. last is the last error of the network or the server, if any.
func giveUp(ctx context.Context, last error) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("λ-RPC: call cancelled: %w", err)
	}
	if last != nil {
		return fmt.Errorf("%w: the last word was: %w", ErrDeadlineExceeded, last)
	}
	return ErrDeadlineExceeded
}

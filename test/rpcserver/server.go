// Package rpcserver is the server's side of λ-RPC in memory (docs/protocol.md), for tests of clients: with handlers in Go,
// and a network with adjustable faults (test/impair).
package rpcserver

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/impair"
)

// Faults are the network's faults, in both directions. Payloads have no check but UDP's, so only
// headers are corrupted unless Span says otherwise.
type Faults = impair.Faults

// Part answers one packet of a message in mode stream: part starts at offset of a request of size bytes. It returns the answer to
// the packet and the length of the whole reply. ok false keeps the packet: the server acknowledges it.
type Part func(method uint32, size, offset int, part []byte) (out []byte, total int, ok bool)

// Workload is what the server does with one workload ID.
type Workload struct {
	Mode     api.MessageMode
	Revision uint32
	Max      int // bytes per request; 0: no limit
	Records  int // messages at once; 0: no limit
	// Handle answers a request of mode packet or assemble, and in mode stream a message whose packets were all kept.
	Handle func(method uint32, request []byte) ([]byte, api.Status)
	Part   Part // mode stream
	// Fail, in mode stream, returns the status and text with which a packet fails; status ok if it does not.
	Fail func(offset int, part []byte) (string, api.Status)
	// Grant, if it is not 0, is how many packets beyond the last that arrived acknowledgements grant.
	Grant int
	// Whole makes the server mark the answer to a whole message of several packets with flag done.
	Whole bool
}

// Stats counts what the server saw.
type Stats struct {
	Packets, Runs, Acks, Pulls, Resends, Released, Padded, Ungranted atomic.Uint64
}

// Server answers λ-RPC on one UDP socket.
type Server struct {
	Stats Stats

	conn *net.UDPConn
	in   *impair.Link
	out  *impair.Link
	done chan struct{}

	mu        sync.Mutex
	workloads map[uint32]Workload
	override  func(h *api.Header) (api.Code, int) // an error instead of an answer
	lose      func(h *api.Header) bool            // no answer
	records   map[recordKey]*record
}

type recordKey struct {
	peer     netip.AddrPort
	workload uint32
	request  uint64
}

// Start serves workloads at address ("127.0.0.1:0") over a network with the given faults.
func Start(address string, workloads map[uint32]Workload, faults Faults) (*Server, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("rpcserver: %w", err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("rpcserver: %w", err)
	}
	_ = conn.SetReadBuffer(4 << 20) // more is only faster
	_ = conn.SetWriteBuffer(4 << 20)
	s := &Server{conn: conn, done: make(chan struct{}), workloads: workloads, records: make(map[recordKey]*record)}
	if faults.Span == 0 {
		faults.Span = api.RPCHeaderLen
	}
	s.in, s.out = impair.NewLink(faults, impair.ToServer), impair.NewLink(faults, impair.ToClient)
	go s.serve()
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Close stops the server and waits for its goroutines.
func (s *Server) Close() {
	s.conn.Close()
	<-s.done
	s.in.Close()
	s.out.Close()
}

// Set replaces a workload, as a deployment of a new revision does.
func (s *Server) Set(id uint32, w Workload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workloads[id] = w
}

// Refuse makes the server answer with an error wherever f returns a code; need is the error's message length.
func (s *Server) Refuse(f func(h *api.Header) (code api.Code, need int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.override = f
}

// Lose makes the server not answer where f says so.
func (s *Server) Lose(f func(h *api.Header) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose = f
}

// Records returns how many messages the server keeps.
func (s *Server) Records() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

func (s *Server) serve() {
	defer close(s.done)
	buf := make([]byte, 64<<10)
	for {
		n, peer, err := s.conn.ReadFromUDPAddrPort(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		s.in.Pass(buf[:n], func(p []byte) {
			if reply := s.answer(peer, p); reply != nil {
				s.out.Pass(reply, func(p []byte) { _, _ = s.conn.WriteToUDPAddrPort(p, peer) })
			}
		})
	}
}

// answer is the protocol: one datagram in, at most one out.
func (s *Server) answer(peer netip.AddrPort, datagram []byte) []byte {
	s.Stats.Packets.Add(1)
	h, payload, err := api.ParsePacket(datagram)
	q := &query{s: s, peer: peer, h: h, payload: payload, room: min(len(datagram)-api.RPCHeaderLen, api.RPCMaxPayload)}
	if err != nil {
		if len(datagram) < api.RPCHeaderLen || h.Magic != api.RPCMagic || h.Version != api.RPCVersion {
			return nil
		}
		return q.refuse(api.CodeMalformed, 0)
	}
	if h.Flags&api.FlagResend != 0 {
		s.Stats.Resends.Add(1)
	}
	if q.room > len(payload) {
		s.Stats.Padded.Add(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lose != nil && s.lose(&h) {
		return nil
	}
	w, ok := s.workloads[h.Workload]
	if !ok {
		return q.refuse(api.CodeUnknownWorkload, 0)
	}
	q.w = w
	if s.override != nil {
		if code, need := s.override(&h); code != 0 {
			return q.refuse(code, need)
		}
	}
	switch h.Type {
	case api.TypeRequest:
		return q.request()
	case api.TypePull:
		s.Stats.Pulls.Add(1)
		return q.pull()
	case api.TypeAck:
		if h.Flags&api.FlagDone != 0 {
			s.Stats.Released.Add(1)
			delete(s.records, q.key())
		}
	}
	return nil
}

// Every calls f until it returns true, and reports whether it did before the time was over.
func Every(d, within time.Duration, f func() bool) bool {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(d) {
		if f() {
			return true
		}
	}
	return f()
}

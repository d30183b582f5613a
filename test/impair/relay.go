package impair

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// Config of a relay.
type Config struct {
	Listen string         // where clients send to, as net.ListenUDP wants it
	Server netip.AddrPort // where their datagrams go
	Up     Faults         // on the way to the server
	Down   Faults         // on the way back
	// Tap, if it is not nil, sees every datagram as it is delivered. client is the address that it comes from or goes to. It must not
	// call the relay.
	Tap func(d Direction, client netip.AddrPort, p []byte)
}

// A Relay passes UDP datagrams on between clients and one server, over IPv4 or IPv6, with the faults of a network. Each client has
// a socket of its own towards the server, so the server tells clients apart by their ports.
type Relay struct {
	cfg      Config
	conn     *net.UDPConn
	up, down *Link
	group    sync.WaitGroup

	mu     sync.Mutex
	flows  map[netip.AddrPort]*net.UDPConn
	closed bool
}

// Start makes one.
func Start(cfg Config) (*Relay, error) {
	addr, err := net.ResolveUDPAddr("udp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	bigBuffers(conn)
	r := &Relay{
		cfg: cfg, conn: conn, up: NewLink(cfg.Up, ToServer), down: NewLink(cfg.Down, ToClient), flows: map[netip.AddrPort]*net.UDPConn{},
	}
	r.group.Go(r.serve)
	return r, nil
}

// Addr is where the relay listens.
func (r *Relay) Addr() netip.AddrPort { return r.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// Counts says what happened in a direction.
func (r *Relay) Counts(d Direction) Counts {
	if d == ToServer {
		return r.up.Counts()
	}
	return r.down.Counts()
}

// Close drops what is under way, and ends the relay.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.conn.Close()
	for _, flow := range r.flows {
		flow.Close()
	}
	r.mu.Unlock()
	r.group.Wait()
	r.up.Close()
	r.down.Close()
}

// serve takes in what clients send.
func (r *Relay) serve() {
	buf := make([]byte, 64<<10)
	for {
		n, client, err := r.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // what the network said of an earlier datagram
		}
		flow, err := r.flow(client)
		if err != nil {
			return
		}
		r.up.Pass(buf[:n], func(p []byte) {
			r.tap(ToServer, client, p)
			_, _ = flow.Write(p) // a server that is not there loses it
		})
	}
}

// flow finds or makes the socket that stands for a client.
func (r *Relay) flow(client netip.AddrPort) (*net.UDPConn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if flow := r.flows[client]; flow != nil {
		return flow, nil
	}
	if r.closed {
		return nil, net.ErrClosed
	}
	flow, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.cfg.Server))
	if err != nil {
		return nil, err
	}
	bigBuffers(flow)
	r.flows[client] = flow
	r.group.Go(func() { r.answer(flow, client) })
	return flow, nil
}

// answer takes in what the server sends to one client.
func (r *Relay) answer(flow *net.UDPConn, client netip.AddrPort) {
	buf := make([]byte, 64<<10)
	for {
		n, err := flow.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		r.down.Pass(buf[:n], func(p []byte) {
			r.tap(ToClient, client, p)
			_, _ = r.conn.WriteToUDPAddrPort(p, client)
		})
	}
}

func (r *Relay) tap(d Direction, client netip.AddrPort, p []byte) {
	if r.cfg.Tap != nil {
		r.cfg.Tap(d, client, p)
	}
}

// bigBuffers keeps the kernel from losing what we did not decide to lose.
func bigBuffers(conn *net.UDPConn) {
	const size = 4 << 20
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		for _, o := range [...][2]int{{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE}, {unix.SO_SNDBUF, unix.SO_SNDBUFFORCE}} {
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o[1], size) != nil { // for which one has to be root
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, o[0], size)
			}
		}
	})
}

package othello

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A datagram is a head of 8 bytes (0x4f, what it is, two bytes 0, and its number, big-endian) and, if it is data, 1 to batch messages. It is
// acknowledged by a head of the same number. Between two hosts one datagram is under way in each direction, which is sent again until it is
// acknowledged; what is sent meanwhile goes in the next. So each message arrives once, and a socket's buffer has to hold one datagram a peer.
const (
	datagramMagic = 0x4f // O
	data          = 1
	acknowledged  = 2
	headSize      = 8
	batch         = 32 // messages: with the headers below, the packet fits Ethernet's 1,500 bytes

	resend = 20 * time.Millisecond // far more than a way on loopback takes
)

// endpoint is a host's end of the transport.
type endpoint struct {
	conn    *net.UDPConn
	write   func(packet []byte, to netip.AddrPort) // a failure is a loss like others
	peers   []netip.AddrPort
	numbers map[netip.AddrPort]int
	box     *mailbox
	refused func()

	mu    sync.Mutex
	links []link // by peer
}

// link is what is under way between two hosts.
type link struct {
	queue    []Message // that were not acknowledged
	flight   int       // how many of these are in the datagram that is under way
	sent     uint32    // its number
	at       time.Time // when it was sent
	received uint32    // number of the last that came
}

// NewUDP makes a cluster whose hosts have a UDP socket each, on 127.0.0.1.
func NewUDP(hosts int) (*Cluster, error) {
	return newUDP(hosts, func(write func([]byte, netip.AddrPort)) func([]byte, netip.AddrPort) { return write })
}

// newUDP has wrap stand before each socket.
func newUDP(hosts int, wrap func(func([]byte, netip.AddrPort)) func([]byte, netip.AddrPort)) (*Cluster, error) {
	c, err := newCluster(hosts)
	if err != nil {
		return nil, err
	}
	ends := make([]*endpoint, 0, len(c.boxes))
	c.closing = func() {
		for _, e := range ends {
			e.conn.Close()
		}
	}
	var peers []netip.AddrPort
	for _, box := range c.boxes {
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("open a socket for each of %d hosts: %w", hosts, err)
		}
		write := wrap(func(packet []byte, to netip.AddrPort) { _, _ = conn.WriteToUDPAddrPort(packet, to) })
		ends = append(ends, &endpoint{conn: conn, write: write, box: box, refused: func() { c.refused.Add(1) }})
		peers = append(peers, conn.LocalAddr().(*net.UDPAddr).AddrPort())
	}
	for _, e := range ends {
		e.know(peers)
		c.running.Go(e.receive)
		c.running.Go(func() { e.resendUntil(c.done) })
	}
	c.run(func(self int) Transport { return ends[self] })
	return c, nil
}

// know has the endpoint speak with peers, and with nobody else.
func (e *endpoint) know(peers []netip.AddrPort) {
	e.peers, e.links, e.numbers = peers, make([]link, len(peers)), make(map[netip.AddrPort]int)
	for i, p := range peers {
		e.numbers[p] = i
	}
}

// Send implements Transport.
func (e *endpoint) Send(to int, m Message) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.links[to]
	l.queue = append(l.queue, m)
	if l.flight == 0 {
		e.sendNext(to)
	}
}

// sendNext sends what waits for a peer, up to a datagram. The caller has the lock, here and below.
func (e *endpoint) sendNext(to int) {
	l := &e.links[to]
	l.flight = min(len(l.queue), batch)
	if l.flight > 0 {
		l.sent++
		e.transmit(to)
	}
}

// transmit sends the datagram that is under way, for the first time or again.
func (e *endpoint) transmit(to int) {
	l := &e.links[to]
	packet := appendHead(make([]byte, 0, headSize+batch*MessageSize), data, l.sent)
	for i := range l.flight {
		packet = l.queue[i].Append(packet)
	}
	l.at = time.Now()
	e.write(packet, e.peers[to])
}

func appendHead(to []byte, what byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(to, datagramMagic, what, 0, 0), number)
}

// resendUntil sends again what was not acknowledged, until done.
func (e *endpoint) resendUntil(done <-chan struct{}) {
	tick := time.NewTicker(resend / 2)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			e.mu.Lock()
			for to := range e.links {
				if l := &e.links[to]; l.flight > 0 && now.Sub(l.at) > resend {
					e.transmit(to)
				}
			}
			e.mu.Unlock()
		}
	}
}

// receive serves datagrams until the socket is closed.
func (e *endpoint) receive() {
	packet := make([]byte, headSize+batch*MessageSize+1) // one more, by which too long a datagram is found
	for {
		n, from, err := e.conn.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		if peer, ok := e.numbers[from]; !ok || !e.accept(peer, packet[:n]) {
			e.refused()
		}
	}
}

// accept serves a datagram of a peer, unless it is broken.
func (e *endpoint) accept(peer int, packet []byte) bool {
	if len(packet) < headSize || packet[0] != datagramMagic || packet[2] != 0 || packet[3] != 0 {
		return false
	}
	number, body := binary.BigEndian.Uint32(packet[4:]), packet[headSize:]
	switch {
	case packet[1] == data && len(body) > 0 && len(body) <= batch*MessageSize && len(body)%MessageSize == 0:
		return e.acceptData(peer, number, body)
	case packet[1] == acknowledged && len(body) == 0:
		e.acceptAcknowledgement(peer, number)
		return true
	}
	return false
}

// acceptData delivers what is new, and acknowledges what has come again as well: the first acknowledgement may be lost.
func (e *endpoint) acceptData(peer int, number uint32, body []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.links[peer]
	if number != l.received && number != l.received+1 {
		return false // a copy that is late by more than one is not from a sender that waits
	}
	if number == l.received+1 {
		l.received = number
		for ; len(body) > 0; body = body[MessageSize:] {
			m, err := ParseMessage(body[:MessageSize])
			if err != nil {
				e.refused()
				continue
			}
			e.box.put(m)
		}
	}
	e.write(appendHead(nil, acknowledged, number), e.peers[peer])
	return true
}

func (e *endpoint) acceptAcknowledgement(peer int, number uint32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := &e.links[peer]
	if l.flight > 0 && number == l.sent {
		l.queue = l.queue[l.flight:]
		e.sendNext(peer)
	}
}

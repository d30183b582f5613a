// Package network simulates a network of one switch, packet by packet: each host has a link to it, and the switch a queue for each link.
// Messages go over it by a transport: Queued, NDP or Homa. A fabric of more switches that always finds a free path, as one of full bisection
// bandwidth that spreads packets does, queues at the same place, the last link.
//
// It simulates NDP (Handley et al., SIGCOMM 2017, section 3) and Homa (Montazeri et al., SIGCOMM 2018, section 3). A packet is four events of
// O(1); with Homa, each that arrives also takes O(m log m) for the m messages under way to that host.
package network

import (
	"fmt"

	"github.com/lambdanic/lambdanic/sim/container"
	"github.com/lambdanic/lambdanic/sim/event"
)

// Config says what a network is like.
type Config struct {
	Transport Transport
	Rate      int64      // of each link, in bit/s
	Hop       event.Time // from a host to the switch, and from the switch to a host
	MTU       int        // bytes of payload in a packet
	// Window is how many packets a message may send before the receiver says more: NDP and Homa. 0: as many as a round trip takes.
	Window int
}

// Transport is how messages share a network.
type Transport uint8

// The transports.
const (
	// Queued sends a message at once. The switch has one queue without a bound for each link.
	Queued Transport = iota
	// NDP is M. Handley et al.: Re-architecting datacenter networks and stacks for low latency and high performance (SIGCOMM 2017). The switch
	// keeps eight packets for a link, and of what comes besides the header alone; the receiver asks for every packet beyond the first window.
	NDP
	// Homa is B. Montazeri et al.: Homa: A receiver-driven low-latency transport protocol using network priorities (SIGCOMM 2018). The receiver
	// grants packets to the messages that are nearest to their end, and gives them priorities in the switch.
	Homa
)

var transports = []string{Queued: "queued", NDP: "ndp", Homa: "homa"}

// String is what ParseTransport reads.
func (t Transport) String() string { return transports[t] }

// ParseTransport reads queued, ndp or homa.
func ParseTransport(s string) (Transport, error) {
	for t, name := range transports {
		if s == name {
			return Transport(t), nil
		}
	}
	return 0, fmt.Errorf("transport %q: it has to be queued, ndp or homa", s)
}

const (
	header   = 64 // bytes of a packet besides its payload, and of one without: Ethernet, IP, transport
	levels   = 8  // priorities
	maxBytes = 1 << 30
)

// Check says what of it cannot be.
func (c *Config) Check() error {
	switch {
	case c.Rate < 1e6 || c.Rate > 1e13:
		return fmt.Errorf("rate: %d bit/s is not between 1 Mbit/s and 10 Tbit/s", c.Rate)
	case c.Hop < 0:
		return fmt.Errorf("hop: the time is negative")
	case c.MTU < header || c.MTU > 1<<16:
		return fmt.Errorf("mtu: %d bytes are not between %d and %d", c.MTU, header, 1<<16)
	case c.Window < 0:
		return fmt.Errorf("window: %d packets is negative", c.Window)
	}
	return nil
}

// takes is how long bytes take to leave on a link.
func (c *Config) takes(bytes int) event.Time {
	return event.Time(int64(bytes) * 8 * int64(event.Second/1000) / (c.Rate / 1000))
}

// Alone is how long a message takes from its sender to its receiver if it is the only one. Its last packet follows the others on the second
// link, which is a full packet behind the first.
func (c *Config) Alone(size int) event.Time {
	full, others := c.takes(c.MTU+header), c.packets(size)-1
	last := c.takes(size - others*c.MTU + header)
	if others == 0 {
		return 2*last + 2*c.Hop
	}
	return event.Time(others+1)*full + last + 2*c.Hop
}

func (c *Config) packets(size int) int { return max(1, (size+c.MTU-1)/c.MTU) }

// window is how many packets are on the way while the first is answered.
func (c *Config) window() int {
	if c.Window > 0 {
		return c.Window
	}
	full := c.takes(c.MTU + header)
	roundTrip := 4*c.Hop + 2*full + 2*c.takes(header)
	return int((roundTrip + full - 1) / full)
}

// Event is something that happens in the network: the owner of the clock gives it back to Handle at its time.
type Event struct {
	Kind Kind
	A, B int32
}

// Kind is what kind of event it is.
type Kind uint8

const (
	upFree   Kind = iota // the link from host a has sent a packet
	atSwitch             // packet a comes to the switch
	downFree             // the link to host a has sent a packet
	arrived              // packet a comes to its receiver
	pulling              // NDP: the receiver a may ask for a packet
	pulled               // NDP: the sender of message a is asked for a packet
	granted              // Homa: message a may send b/levels packets in all, on level b%levels
)

// Network is one in progress. Its clock and its queue of events are its owner's.
type Network struct {
	// Deepest is how many bytes waited at most for one link of the switch.
	Deepest int

	cfg      Config
	after    func(event.Time, Event)
	deliver  func(id int64)
	protocol protocol
	hosts    []host
	packets  container.Slab[packet] // on their way
	unsent   int                    // Queued: packets that are to be sent
	messages container.Slab[message]
}

// protocol is a transport's part of it.
type protocol interface {
	begin(m int32)                       // a message is to be sent
	next(from int32) (p packet, ok bool) // what an idle link sends
	admit(p *packet)                     // what the switch does with a packet for a link that is busy
	arrived(p packet)                    // a packet came to its receiver
	handle(e Event)                      // what the protocol scheduled
}

// host is the two links of one.
type host struct {
	sending, receiving bool
	waiting            int // bytes, at the switch
	queues             [levels]container.Queue[int32]
	out                container.Queue[packet] // Queued: packets that are to be sent
	turns              container.Queue[int32]  // NDP: messages that have packets to send
	mine               []int32                 // Homa: messages that it sends; those that it receives are in theirs
	theirs             []int32
	pulls              container.Queue[int32] // NDP: messages that are to be asked for packets, in turn
	pacing             bool
}

// message is on its way.
type message struct {
	id       int64
	from, to int32
	size     int32
	packets  int32
	sent     int32 // packets, once each
	allowed  int32 // packets that the sender may have sent
	promised int32 // Homa: that the receiver has granted
	received int32
	trimmed  int32                  // NDP: packets that lost their payload
	missing  container.Queue[int32] // and which of them are to be sent again
	due      int32                  // packets that the sender may send now
	pulls    int32                  // and that the receiver is to ask for
	level    int8                   // Homa: of what is granted
}

type packet struct {
	message int32
	number  int32
	bytes   int32 // with the header
	level   int8  // 0 is sent first
	trimmed bool
}

// New returns a network of so many hosts. after schedules an event in a while, and deliver is called when a message is there.
func New(cfg Config, hosts int, after func(event.Time, Event), deliver func(id int64)) *Network {
	n := &Network{cfg: cfg, after: after, deliver: deliver, hosts: make([]host, hosts)}
	switch cfg.Transport {
	case Queued:
		n.protocol = queued{n}
	case NDP:
		n.protocol = ndp{n}
	case Homa:
		n.protocol = newHoma(n)
	}
	return n
}

// Send sends a message. Deliver gets its id.
func (n *Network) Send(from, to int32, size int, id int64) {
	size = min(max(size, 0), maxBytes)
	m := n.messages.Put(message{id: id, from: from, to: to, size: int32(size), packets: int32(n.cfg.packets(size))})
	n.protocol.begin(m)
	n.startSending(from)
}

// Packets counts those that are on their way or, with Queued, are to be sent.
func (n *Network) Packets() int { return n.packets.Len() + n.unsent }

// Handle has an event happen.
func (n *Network) Handle(e Event) {
	switch e.Kind {
	case upFree:
		n.hosts[e.A].sending = false
		n.startSending(e.A)
	case atSwitch:
		n.forward(e.A)
	case downFree:
		n.hosts[e.A].receiving = false
		n.startForwarding(e.A)
	case arrived:
		n.protocol.arrived(n.packets.Take(e.A))
	default:
		n.protocol.handle(e)
	}
}

// startSending has an idle link of a host send what there is.
func (n *Network) startSending(from int32) {
	h := &n.hosts[from]
	if h.sending {
		return
	}
	p, ok := n.protocol.next(from)
	if !ok {
		return
	}
	h.sending = true
	took := n.cfg.takes(int(p.bytes))
	n.after(took, Event{Kind: upFree, A: from})
	n.after(took+n.cfg.Hop, Event{Kind: atSwitch, A: n.packets.Put(p)})
}

// forward has the switch take a packet in.
func (n *Network) forward(at int32) {
	p := n.packets.At(at)
	to := n.messages.At(p.message).to
	h := &n.hosts[to]
	if h.receiving {
		n.protocol.admit(p)
	}
	h.waiting += int(p.bytes)
	n.Deepest = max(n.Deepest, h.waiting)
	h.queues[p.level].Push(at)
	n.startForwarding(to)
}

func (n *Network) startForwarding(to int32) {
	h := &n.hosts[to]
	if h.receiving {
		return
	}
	for level := range h.queues {
		if h.queues[level].Len() == 0 {
			continue
		}
		at := h.queues[level].Pop()
		bytes := int(n.packets.At(at).bytes)
		h.waiting -= bytes
		h.receiving = true
		took := n.cfg.takes(bytes)
		n.after(took, Event{Kind: downFree, A: to})
		n.after(took+n.cfg.Hop, Event{Kind: arrived, A: at})
		return
	}
}

// packet is the one of a message with that number.
func (n *Network) packet(m int32, number int32, level int8) packet {
	msg := n.messages.At(m)
	bytes := int32(n.cfg.MTU)
	if number == msg.packets-1 {
		bytes = msg.size - number*int32(n.cfg.MTU)
	}
	return packet{message: m, number: number, bytes: bytes + header, level: level}
}

// got counts a packet that arrived whole. It is true for the last, after which the message is gone.
func (n *Network) got(m int32) (all bool) {
	msg := n.messages.At(m)
	msg.received++
	if msg.received < msg.packets {
		return false
	}
	id := n.messages.Take(m).id
	n.deliver(id)
	return true
}

// control is how long a packet without payload takes, which overtakes all others.
func (n *Network) control() event.Time { return 2*n.cfg.takes(header) + 2*n.cfg.Hop }

// queued is the transport of that name.
type queued struct{ *Network }

func (q queued) begin(m int32) {
	msg := q.messages.At(m)
	for number := range msg.packets {
		q.hosts[msg.from].out.Push(q.packet(m, number, 0))
	}
	q.unsent += int(msg.packets)
}

func (q queued) next(from int32) (packet, bool) {
	out := &q.hosts[from].out
	if out.Len() == 0 {
		return packet{}, false
	}
	q.unsent--
	return out.Pop(), true
}

func (q queued) admit(*packet)    {}
func (q queued) arrived(p packet) { q.got(p.message) }
func (q queued) handle(Event)     {}

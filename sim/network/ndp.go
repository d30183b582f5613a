package network

// ndp is the transport of that name. What the receiver says goes by packets without payload, which overtake all others.
type ndp struct{ *Network }

// kept is how many packets with payload the switch keeps for a link.
const kept = 8

// The levels of ndp: headers alone before whole packets.
const (
	headers int8 = iota
	whole
)

func (n ndp) begin(m int32) {
	msg := n.messages.At(m)
	msg.allowed = min(msg.packets, int32(n.cfg.window()))
	msg.due = msg.allowed
	n.hosts[msg.from].turns.Push(m)
}

// next is of each message in turn, and first what lost its payload.
func (n ndp) next(from int32) (p packet, ok bool) {
	turns := &n.hosts[from].turns
	if turns.Len() == 0 {
		return p, false
	}
	m := turns.Pop()
	msg := n.messages.At(m)
	if msg.due--; msg.due > 0 {
		turns.Push(m)
	}
	if msg.missing.Len() > 0 {
		return n.packet(m, msg.missing.Pop(), whole), true
	}
	msg.sent++
	return n.packet(m, msg.sent-1, whole), true
}

// admit trims a packet that finds the queue full.
func (n ndp) admit(p *packet) {
	h := &n.hosts[n.messages.At(p.message).to]
	if h.queues[whole].Len() >= kept {
		p.trimmed, p.bytes, p.level = true, header, headers
	}
}

func (n ndp) arrived(p packet) {
	msg := n.messages.At(p.message)
	to := msg.to
	if p.trimmed {
		msg.trimmed++
		msg.missing.Push(p.number)
	} else if n.got(p.message) {
		return
	}
	// One packet has left the network, so another may enter, if there is one.
	if msg.allowed < msg.packets+msg.trimmed {
		msg.allowed++
		if msg.pulls++; msg.pulls == 1 {
			n.hosts[to].pulls.Push(p.message)
		}
		n.pull(to)
	}
}

// pull asks for packets at the pace at which they fit the receiver's link, of each message in turn.
func (n ndp) pull(to int32) {
	h := &n.hosts[to]
	if h.pacing || h.pulls.Len() == 0 {
		return
	}
	h.pacing = true
	m := h.pulls.Pop()
	if msg := n.messages.At(m); msg.pulls > 1 {
		msg.pulls--
		h.pulls.Push(m)
	} else {
		msg.pulls = 0
	}
	n.after(n.control(), Event{Kind: pulled, A: m})
	n.after(n.cfg.takes(n.cfg.MTU+header), Event{Kind: pulling, A: to})
}

func (n ndp) handle(e Event) {
	if e.Kind == pulling {
		n.hosts[e.A].pacing = false
		n.pull(e.A)
		return
	}
	msg := n.messages.At(e.A)
	if msg.due++; msg.due == 1 {
		n.hosts[msg.from].turns.Push(e.A)
	}
	n.startSending(msg.from)
}

package network

import "slices"

// homa is the transport of that name. A message's first window goes unscheduled, on levels by its size; the rest is granted, on levels by rank.
type homa struct {
	*Network
	most [unscheduled - 1]int32 // packets of a message on each level of those but the last
}

const (
	unscheduled = 4                    // levels of these packets
	scheduled   = levels - unscheduled // as many messages are granted at a time
)

func newHoma(n *Network) homa {
	h := homa{Network: n}
	// Small messages first: a packet, a quarter of a window, a window.
	w := int32(n.cfg.window())
	h.most = [unscheduled - 1]int32{1, max(2, w/4), max(3, w)}
	return h
}

func (h homa) begin(m int32) {
	msg := h.messages.At(m)
	msg.allowed = min(msg.packets, int32(h.cfg.window()))
	msg.promised = msg.allowed
	from := &h.hosts[msg.from]
	from.mine = append(from.mine, m)
	if msg.packets > msg.allowed {
		// The first packet tells the receiver; by the time that a grant would come, it has.
		to := &h.hosts[msg.to]
		to.theirs = append(to.theirs, m)
	}
}

func (h homa) next(from int32) (p packet, ok bool) {
	host := &h.hosts[from]
	best := -1
	for i, m := range host.mine {
		msg := h.messages.At(m)
		if msg.sent < msg.allowed && (best < 0 || h.left(m) < h.left(host.mine[best])) {
			best = i
		}
	}
	if best < 0 {
		return p, false
	}
	m := host.mine[best]
	msg := h.messages.At(m)
	level := msg.level
	if msg.sent < int32(h.cfg.window()) {
		level = h.levelOf(msg)
	}
	p = h.packet(m, msg.sent, level)
	msg.sent++
	if msg.sent == msg.packets {
		host.mine = slices.Delete(host.mine, best, best+1)
	}
	return p, true
}

// left is how many packets of a message are to be sent.
func (h homa) left(m int32) int32 {
	msg := h.messages.At(m)
	return msg.packets - msg.sent
}

// levelOf is that of a message's unscheduled packets.
func (h homa) levelOf(msg *message) int8 {
	for level, most := range h.most {
		if msg.packets <= most {
			return int8(level)
		}
	}
	return unscheduled - 1
}

func (h homa) admit(*packet) {}

func (h homa) arrived(p packet) {
	to := h.messages.At(p.message).to
	h.got(p.message)
	h.grant(to)
}

// grant keeps a window of packets on the way of each of the messages that have least left, of those that have not been granted all.
func (h homa) grant(to int32) {
	host := &h.hosts[to]
	slices.SortStableFunc(host.theirs, func(a, b int32) int {
		return int(h.messages.At(a).packets-h.messages.At(a).received) - int(h.messages.At(b).packets-h.messages.At(b).received)
	})
	done := 0
	for rank, m := range host.theirs[:min(len(host.theirs), scheduled)] {
		msg := h.messages.At(m)
		upTo := min(msg.packets, msg.received+int32(h.cfg.window()))
		if upTo > msg.promised {
			msg.promised = upTo
			h.after(h.control(), Event{Kind: granted, A: m, B: upTo*levels + int32(unscheduled+rank)})
		}
		if msg.promised == msg.packets {
			done++
		}
	}
	if done > 0 {
		host.theirs = slices.DeleteFunc(host.theirs, func(m int32) bool { return h.messages.At(m).promised == h.messages.At(m).packets })
		h.grant(to) // others move up
	}
}

// handle is that a grant comes to the sender. The message is there still: what was granted has not been sent.
func (h homa) handle(e Event) {
	msg := h.messages.At(e.A)
	msg.allowed, msg.level = e.B/levels, int8(e.B%levels)
	h.startSending(msg.from)
}

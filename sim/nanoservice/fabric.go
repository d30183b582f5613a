package nanoservice

import (
	"github.com/lambdanic/lambdanic/sim/container"
	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/network"
)

// wired is a fabric of links and a switch.
type wired struct {
	s       *sim
	net     *network.Network
	leaving container.Slab[leaving] // messages on their way
}

// leaving is a message on its way.
type leaving struct {
	message
	from, to int32
	bytes    int
}

const (
	inNetwork int8 = iota // the tag of events of the network's own
	toNetwork             // and of a message that is to leave
)

// newWired connects so many machines, of which the first are the hosts of s.
func newWired(s *sim, c network.Config, machines int) *wired {
	f := &wired{s: s}
	f.net = network.New(c, machines, f.after, f.deliver)
	return f
}

func (f *wired) send(s *sim, at event.Time, from, to int32, bytes int, m message) {
	id := f.leaving.Put(leaving{m, from, to, bytes})
	s.events.Push(at, happening{message: message{a: id, tag: toNetwork}, what: forFabric})
}

func (f *wired) packets() int { return f.net.Packets() }

func (f *wired) happened(_ *sim, m message) {
	if m.tag == toNetwork {
		l := f.leaving.At(m.a)
		f.net.Send(l.from, l.to, l.bytes, int64(m.a))
		return
	}
	f.net.Handle(network.Event{Kind: network.Kind(m.kind), A: m.a, B: m.b})
}

func (f *wired) after(in event.Time, e network.Event) {
	f.s.events.Push(f.s.events.Now()+in, happening{message: message{a: e.A, b: e.B, kind: uint8(e.Kind), tag: inNetwork}, what: forFabric})
}

func (f *wired) deliver(id int64) {
	l := f.leaving.Take(int32(id))
	f.s.deliver(f.s.events.Now(), l.to, l.message)
}

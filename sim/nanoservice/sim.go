package nanoservice

import (
	"context"
	"math/rand/v2"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// sim is a simulation in progress: hosts, what connects them, and the work that they do.
type sim struct {
	events event.Queue[happening]
	r      *rand.Rand
	cfg    *Machine
	hosts  []host
	wire   event.Time
	work   work
	served uint64 // messages
}

// work is what messages are for.
type work interface {
	// begin sends the first messages.
	begin(s *sim)
	// cost is how long a core takes for a message.
	cost(s *sim, m message) event.Time
	// done is called when a host has served a message. The simulation ends when it returns true.
	done(s *sim, at int32, m message) (over bool)
	// happened is called for what the work itself had scheduled.
	happened(s *sim, m message) (over bool)
}

// message is what goes from host to host. The work alone knows what the numbers mean, but for flow: messages of one flow are told apart
// from those of others by RSS.
type message struct {
	a, b int32
	flow int32
	kind uint8
	tag  int8
}

// happening is an event of the simulation.
type happening struct {
	message
	what what
	core int16
	host int32
}

type what uint8

const (
	atNIC   what = iota // a message has come to the NIC of a host
	atCore              // and to a core
	ran                 // a core has run for as long as it was to
	credit              // the NIC learns that a core is through with a message
	forWork             // something that the work had scheduled
)

func newSim(m *Machine, hosts int, wire event.Time, w work, seed uint64) *sim {
	s := &sim{r: random.New(seed, 0), cfg: m, hosts: make([]host, hosts), wire: wire, work: w}
	cores := make([]core, hosts*m.Cores)
	for i := range s.hosts {
		s.hosts[i].cores = cores[i*m.Cores : (i+1)*m.Cores : (i+1)*m.Cores]
	}
	return s
}

// run simulates until the work is over or nothing happens any more.
func (s *sim) run(ctx context.Context) error {
	s.work.begin(s)
	for n := 0; ; n++ {
		_, h, ok := s.events.Pop()
		if !ok {
			return nil
		}
		over := false
		switch h.what {
		case atNIC:
			s.arrive(h.host, h.message)
		case atCore:
			s.enqueue(h.host, h.core, h.message)
		case ran:
			over = s.ran(h.host, h.core)
		case credit:
			s.credit(h.host, h.core)
		case forWork:
			over = s.work.happened(s, h.message)
		}
		if over {
			return nil
		}
		if n%(1<<20) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// send has a host's core send a message to another host.
func (s *sim) send(to int32, m message) {
	s.deliver(s.events.Now()+s.cfg.Interface.Delay+s.wire, to, m)
}

// deliver has a message come to the NIC of a host at a time.
func (s *sim) deliver(at event.Time, to int32, m message) {
	if s.cfg.Dispatch.atOnce() {
		// Which core it is for does not depend on what happens until it is there.
		s.events.Push(at+s.cfg.Interface.Delay, happening{m, atCore, s.choose(to, m), to})
		return
	}
	s.events.Push(at, happening{m, atNIC, 0, to})
}

// later has the work hear of m at a time.
func (s *sim) later(at event.Time, m message) {
	s.events.Push(at, happening{message: m, what: forWork})
}

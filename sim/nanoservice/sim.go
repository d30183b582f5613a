package nanoservice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// sim is a simulation in progress: hosts, what connects them, and the work that they do.
type sim struct {
	events  event.Queue[happening]
	r       *rand.Rand
	cfg     *Machine
	hosts   []host
	fabric  fabric
	work    work
	served  uint64 // messages
	waiting int    // messages at hosts
	most    int    // and on their way
}

// fabric brings messages from one NIC to another. What is no host has a number above theirs.
type fabric interface {
	// send has a message leave a NIC at a time.
	send(s *sim, at event.Time, from, to int32, bytes int, m message)
	// happened is for what the fabric had scheduled.
	happened(s *sim, m message)
	// packets are those that wait in it.
	packets() int
}

// ideal is a fabric that has room for everything: each message takes that time.
type ideal event.Time

func (i ideal) send(s *sim, at event.Time, _, to int32, _ int, m message) {
	s.deliver(at+event.Time(i), to, m)
}

func (i ideal) happened(*sim, message) {}
func (i ideal) packets() int           { return 0 }

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
	atNIC     what = iota // a message has come to the NIC of a host
	atCore                // and to a core
	ran                   // a core has run for as long as it was to
	credit                // the NIC learns that a core is through with a message
	forWork               // something that the work had scheduled
	forFabric             // or the fabric
)

// newSim returns a simulation whose fabric is to be set.
func newSim(m *Machine, hosts int, w work, seed uint64) *sim {
	s := &sim{r: random.New(seed, 0), cfg: m, hosts: make([]host, hosts), work: w, most: most}
	cores := make([]core, hosts*m.Cores)
	for i := range s.hosts {
		s.hosts[i].cores = cores[i*m.Cores : (i+1)*m.Cores : (i+1)*m.Cores]
	}
	return s
}

// most is how many messages may be on their way or wait. They take about 2 GiB.
const most = 1 << 24

// run simulates until the work is over or nothing happens any more.
func (s *sim) run(ctx context.Context) error {
	s.work.begin(s)
	for n := 0; ; n++ {
		if s.events.Len()+s.waiting+s.fabric.packets() > s.most {
			return fmt.Errorf("more than %d messages and packets are on their way at a time: take less depth, fewer branches or clients, shorter messages, or less load", s.most)
		}
		_, h := s.events.Pop()
		if s.events.Overflowed() {
			return errors.New("the simulated time exceeds 106 days: take fewer requests, shorter times, or more load")
		}
		if h == nil {
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
		case forFabric:
			s.fabric.happened(s, h.message)
		}
		if over {
			return nil
		}
		if n%(1<<14) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// send has a host's core send a message.
func (s *sim) send(from, to int32, bytes int, m message) {
	s.fabric.send(s, s.events.Now()+s.cfg.Interface.Delay, from, to, bytes, m)
}

// deliver has a message come to the NIC of a host at a time, or to the work, if it is for no host.
func (s *sim) deliver(at event.Time, to int32, m message) {
	if int(to) >= len(s.hosts) {
		s.later(at, m)
		return
	}
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

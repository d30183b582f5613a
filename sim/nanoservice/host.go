package nanoservice

import (
	"github.com/lambdanic/lambdanic/sim/container"
	"github.com/lambdanic/lambdanic/sim/event"
)

// Machine is what all hosts are like.
type Machine struct {
	Cores     int
	Interface Interface
	Dispatch  Dispatch
	// Quantum, where it is not 0, is how long a core runs one message while others wait for it. To change to another takes Switch.
	Quantum, Switch event.Time
}

// host serves messages.
type host struct {
	cores []core
	queue container.Queue[job] // of all cores: in the NIC for JBSQ, in memory for Central
	inAll int                  // messages that are in the host's queues or run
	next  int                  // core, by turns
}

// core runs one message at a time.
type core struct {
	queue container.Queue[job]
	job   job        // that runs
	slice event.Time // of it: it runs for so long now
	busy  bool
	owed  int16      // JBSQ: messages that the NIC gave it and has not heard of
	spent event.Time // on messages, without the time to get at them
}

// job is a message that waits for a core or runs on one.
type job struct {
	message
	access event.Time
	left   event.Time // of its run; -1: it has not begun
}

// arrive has a host's NIC choose a core, when it is to wait with that until the message is there.
func (s *sim) arrive(at int32, m message) {
	h := &s.hosts[at]
	if c := h.idlest(s.cfg.Dispatch.N); c >= 0 {
		s.give(at, c, m)
		return
	}
	h.queue.Push(job{message: m})
}

// give has the NIC hand a message to a core.
func (s *sim) give(at int32, c int16, m message) {
	s.hosts[at].cores[c].owed++
	s.events.Push(s.events.Now()+s.cfg.Interface.Delay, happening{m, atCore, c, at})
}

// credit is given by a core that is through with a message.
func (s *sim) credit(at int32, c int16) {
	h := &s.hosts[at]
	h.cores[c].owed--
	if h.queue.Len() > 0 {
		s.give(at, c, h.queue.Pop().message)
	}
}

// idlest is the core that has the fewest messages, fewer than n, or -1.
func (h *host) idlest(n int) int16 {
	best := -1
	for i := range h.cores {
		// From another core each time, or the first would have most.
		c := (h.next + i) % len(h.cores)
		if int(h.cores[c].owed) < n && (best < 0 || h.cores[c].owed < h.cores[best].owed) {
			best = c
		}
	}
	if best >= 0 {
		h.next = (best + 1) % len(h.cores)
	}
	return int16(best)
}

// enqueue has a message join a core's queue; where all cores have one queue, c is that of any.
func (s *sim) enqueue(at int32, c int16, m message) {
	h := &s.hosts[at]
	h.inAll++
	s.waiting++
	j := job{message: m, access: s.cfg.Interface.access(h.inAll), left: -1}
	if s.cfg.Dispatch.Policy == Central {
		if c = h.free(); c < 0 {
			h.queue.Push(j)
			return
		}
	} else if h.cores[c].busy {
		h.cores[c].queue.Push(j)
		return
	}
	s.start(at, c, j, 0)
}

// free is a core that does nothing, or -1.
func (h *host) free() int16 {
	for c := range h.cores {
		if !h.cores[c].busy {
			return int16(c)
		}
	}
	return -1
}

// start has a core run a message, for a quantum at most, after it has taken so long to change to it.
func (s *sim) start(at int32, c int16, j job, change event.Time) {
	k := &s.hosts[at].cores[c]
	takes := change
	if j.left < 0 {
		j.left = s.work.cost(s, j.message)
		k.spent += j.left
		takes += j.access
	}
	k.job, k.slice, k.busy = j, j.left, true
	if q := s.cfg.Quantum; q > 0 {
		k.slice = min(k.slice, q)
	}
	s.events.Push(s.events.Now()+takes+k.slice, happening{what: ran, core: c, host: at})
}

// ran ends the turn of what runs on a core.
func (s *sim) ran(at int32, c int16) (over bool) {
	h := &s.hosts[at]
	k := &h.cores[c]
	j := k.job
	if j.left -= k.slice; j.left > 0 {
		s.preempt(at, c, j)
		return false
	}
	h.inAll--
	s.waiting--
	s.served++
	over = s.work.done(s, at, j.message)
	if s.cfg.Dispatch.Policy == JBSQ {
		s.events.Push(s.events.Now()+s.cfg.Interface.Delay, happening{what: credit, core: c, host: at})
	}
	if q := h.queueOf(s.cfg, c); q.Len() > 0 {
		s.start(at, c, q.Pop(), 0)
	} else {
		k.busy = false
	}
	return over
}

// preempt has a core go on with the next message, if there is one.
func (s *sim) preempt(at int32, c int16, j job) {
	q := s.hosts[at].queueOf(s.cfg, c)
	if q.Len() == 0 {
		s.start(at, c, j, 0)
		return
	}
	q.Push(j)
	s.start(at, c, q.Pop(), s.cfg.Switch)
}

// queueOf is where a core finds its next message.
func (h *host) queueOf(m *Machine, c int16) *container.Queue[job] {
	if m.Dispatch.Policy == Central {
		return &h.queue
	}
	return &h.cores[c].queue
}

package nanoservice

import (
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
	queue fifo // of all cores: in the NIC for JBSQ, in memory for Central
	inAll int  // messages that are in the host's queues or run
	next  int  // core, by turns
}

// core runs one message at a time.
type core struct {
	queue fifo
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
	h.queue.push(job{message: m})
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
	if h.queue.len() > 0 {
		s.give(at, c, h.queue.pop().message)
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
			h.queue.push(j)
			return
		}
	} else if h.cores[c].busy {
		h.cores[c].queue.push(j)
		return
	}
	s.start(at, c, j)
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

// start has a core run a message, for a quantum at most.
func (s *sim) start(at int32, c int16, j job) {
	k := &s.hosts[at].cores[c]
	takes := event.Time(0)
	if j.left < 0 {
		j.left = s.work.cost(s, j.message)
		k.spent += j.left
		takes = j.access
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
	if q := h.queueOf(s.cfg, c); q.len() > 0 {
		s.start(at, c, q.pop())
	} else {
		k.busy = false
	}
	return over
}

// preempt has a core go on with the next message, if there is one.
func (s *sim) preempt(at int32, c int16, j job) {
	q := s.hosts[at].queueOf(s.cfg, c)
	if q.len() == 0 {
		s.start(at, c, j)
		return
	}
	q.push(j)
	next := q.pop()
	next.access += s.cfg.Switch
	s.start(at, c, next)
}

// queueOf is where a core finds its next message.
func (h *host) queueOf(m *Machine, c int16) *fifo {
	if m.Dispatch.Policy == Central {
		return &h.queue
	}
	return &h.cores[c].queue
}

// fifo is a queue of jobs.
type fifo struct {
	jobs []job
	head int
}

func (q *fifo) len() int   { return len(q.jobs) - q.head }
func (q *fifo) push(j job) { q.jobs = append(q.jobs, j) }

func (q *fifo) pop() job {
	j := q.jobs[q.head]
	q.head++
	switch {
	case q.head == len(q.jobs):
		q.jobs, q.head = q.jobs[:0], 0
	case q.head > 64 && q.head > len(q.jobs)/2:
		q.jobs, q.head = q.jobs[:copy(q.jobs, q.jobs[q.head:])], 0
	}
	return j
}

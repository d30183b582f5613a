package nanoservice

import (
	"context"
	"math/rand/v2"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// run is one search in progress.
type run struct {
	*Tree
	r      *rand.Rand
	events event.Queue[happening]
	hosts  []host
	nodes  []node  // that wait for answers, and free ones
	free   []int32 // of nodes
	sent   uint64  // map messages
	result Result
}

// happening is that a message arrives at a host, or that a host has served one.
type happening struct {
	host int32
	message
}

// message asks to search a position (map), or has the result of one (reduce).
type message struct {
	parent int32 // the node that waits for the answer
	at     int32 // map: the host of the parent
	kind   kind
	depth  int8 // map: how far below the root
}

type kind int8

const (
	mapping kind = iota
	reducing
	served // no message: the host has served the first of its queue
)

// host serves one message at a time, in the order in which they came.
type host struct {
	queue []waiting // the first is being served
	head  int
	busy  event.Time
}

type waiting struct {
	message
	access event.Time
}

// node is a position whose moves were sent to be searched.
type node struct {
	parent int32
	at     int32
	wait   int32 // answers that are missing
}

const root = -1 // the parent of the root

// Run searches once. Each seed gives one result.
func (t *Tree) Run(ctx context.Context, seed uint64) (Result, error) {
	if err := t.check(); err != nil {
		return Result{}, err
	}
	s := &run{Tree: t, r: random.New(seed), hosts: make([]host, t.Hosts)}
	s.arrive(0, message{parent: root})
	s.sent = 1
	for {
		_, h, ok := s.events.Pop()
		if !ok {
			return s.result, nil
		}
		if h.kind != served {
			s.arrive(h.host, h.message)
		} else if s.finish(h.host) {
			break
		}
		if s.result.Messages%(1<<20) == 0 && ctx.Err() != nil {
			return s.result, ctx.Err()
		}
	}
	s.result.Finish = s.events.Now()
	var busy event.Time
	for i := range s.hosts {
		busy += s.hosts[i].busy
	}
	s.result.Utilisation = float64(busy) / float64(s.result.Finish) / float64(t.Hosts)
	return s.result, nil
}

// arrive has a message join the queue of a host.
func (s *run) arrive(at int32, m message) {
	h := &s.hosts[at]
	h.queue = append(h.queue, waiting{m, s.Interface.access(len(h.queue) - h.head + 1)})
	if len(h.queue)-h.head == 1 {
		s.serve(at, h)
	}
}

func (s *run) serve(at int32, h *host) {
	m := h.queue[h.head]
	service := s.Reduce
	if m.kind == mapping {
		service = s.Map.Sample(s.r)
	}
	h.busy += service
	s.events.Push(s.events.Now()+m.access+service, happening{at, message{kind: served}})
}

// finish does what the message asks for that a host was serving. It is true at the end of the search.
func (s *run) finish(at int32) bool {
	h := &s.hosts[at]
	m := h.queue[h.head]
	h.head++
	s.result.Messages++
	over := s.answer(at, m.message)
	if h.head == len(h.queue) {
		h.queue, h.head = h.queue[:0], 0
	} else {
		if h.head > 64 && h.head > len(h.queue)/2 {
			h.queue, h.head = h.queue[:copy(h.queue, h.queue[h.head:])], 0
		}
		s.serve(at, h)
	}
	return over
}

func (s *run) answer(at int32, m message) bool {
	if m.kind == mapping && int(m.depth) < s.Depth-1 {
		s.branch(at, m)
		return false
	}
	parent, to := m.parent, m.at
	if m.kind == reducing {
		n := &s.nodes[m.parent]
		if n.wait--; n.wait > 0 {
			return false
		}
		parent, to = n.parent, n.at
		s.free = append(s.free, m.parent)
	}
	if parent == root {
		return true
	}
	s.events.Push(s.events.Now()+s.oneWay(), happening{to, message{kind: reducing, parent: parent}})
	return false
}

// branch sends the moves of a position to be searched.
func (s *run) branch(at int32, m message) {
	k := s.Branches.Sample(s.r)
	n := node{parent: m.parent, at: m.at, wait: int32(k)}
	var id int32
	if last := len(s.free) - 1; last >= 0 {
		id, s.free = s.free[last], s.free[:last]
		s.nodes[id] = n
	} else {
		id = int32(len(s.nodes))
		s.nodes = append(s.nodes, n)
	}
	for range k {
		to := int32(s.sent % uint64(s.Hosts))
		s.sent++
		s.events.Push(s.events.Now()+s.oneWay(), happening{to, message{parent: id, at: at, depth: m.depth + 1}})
	}
}

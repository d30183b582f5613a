package nanoservice

import (
	"context"

	"github.com/lambdanic/lambdanic/sim/container"
	"github.com/lambdanic/lambdanic/sim/event"
)

// search is one search of a tree in progress. A message's a is the node that waits for the answer; a map's b is the host of that node, and
// its tag how far below the root it is.
type search struct {
	*Tree
	nodes container.Slab[node] // that wait for answers
	sent  uint64               // map messages
	over  event.Time
}

const (
	mapping uint8 = iota
	reducing
)

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
	w := &search{Tree: t}
	s := newSim(&Machine{Cores: 1, Interface: t.Interface}, t.Hosts, w, seed)
	s.fabric = ideal(t.Wire)
	if t.Network != nil {
		s.fabric = newWired(s, *t.Network, t.Hosts)
	}
	if err := s.run(ctx); err != nil {
		return Result{}, err
	}
	var busy event.Time
	for i := range s.hosts {
		busy += s.hosts[i].cores[0].spent
	}
	utilisation := float64(busy) / float64(w.over) / float64(t.Hosts)
	return Result{Finish: w.over, Utilisation: utilisation, Messages: s.served}, nil
}

func (w *search) begin(s *sim) {
	w.sent = 1
	s.enqueue(0, 0, message{a: root, kind: mapping})
}

func (w *search) cost(s *sim, m message) event.Time {
	if m.kind == reducing {
		return w.Reduce
	}
	return w.Map.Sample(s.r)
}

func (w *search) happened(*sim, message) bool { return false }

func (w *search) done(s *sim, at int32, m message) (over bool) {
	if m.kind == mapping && int(m.tag) < w.Depth-1 {
		w.branch(s, at, m)
		return false
	}
	parent, to := m.a, m.b
	if m.kind == reducing {
		n := w.nodes.At(m.a)
		if n.wait--; n.wait > 0 {
			return false
		}
		parent, to = n.parent, n.at
		w.nodes.Take(m.a)
	}
	if parent == root {
		w.over = s.events.Now()
		return true
	}
	s.send(at, to, w.Bytes, message{a: parent, kind: reducing})
	return false
}

// branch sends the moves of a position to be searched.
func (w *search) branch(s *sim, at int32, m message) {
	k := w.Branches.Sample(s.r)
	n := node{parent: m.a, at: m.b, wait: int32(k)}
	id := w.nodes.Put(n)
	for range k {
		to := int32(w.sent % uint64(w.Hosts))
		w.sent++
		s.send(at, to, w.Bytes, message{a: id, b: at, kind: mapping, tag: m.tag + 1})
	}
}

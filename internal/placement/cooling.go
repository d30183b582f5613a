package placement

import (
	"math"
	"slices"
)

const (
	probes      = 200  // random moves, to find a temperature at which
	acceptFirst = 0.8  // of the moves for the worse are accepted
	coolTo      = 1e-4 // of that temperature
	pairShare   = 0.25 // of the moves take a microservice where another one is, and that one elsewhere: half of them to where the first was
	nearShare   = 0.25 // go to a node on the server of a microservice that it talks to
	steps       = 100  // of the temperature
)

// change is what a move changes.
type change struct{ broken, cost float64 }

// move takes a microservice elsewhere, and perhaps another one.
type move struct {
	i, j     int32     // j: -1 for one
	from, to [2]NodeID // of i and j
	possible bool
}

// repairs is what the first pass minimises: what is broken.
func (a *annealer) repairs(c change) float64 { return c.broken }

// improves is what the second pass minimises: the cost, with nothing broken.
func (a *annealer) improves(c change) float64 {
	if c.broken > epsilon {
		return math.Inf(1)
	}
	return c.cost
}

// cool anneals by value, and leaves the best placement that it saw at the end of a step in best.
func (a *annealer) cool(moves int, value func(*annealer, change) float64) {
	now := value(a, change{a.broken, a.cost})
	a.best, a.bestValue = slices.Clone(a.at), now
	temperature := a.probe(value)
	factor := math.Pow(coolTo, 1.0/steps)
	for step := range steps {
		for range moves*(step+1)/steps - moves*step/steps {
			m := a.propose()
			if !m.possible {
				continue
			}
			c := a.apply(m)
			worse := value(a, c)
			if worse > 0 && (temperature == 0 || a.r.Float64() >= math.Exp(-worse/temperature)) {
				a.undo(m)
				continue
			}
			a.broken += c.broken
			a.cost += c.cost
		}
		if step == steps-1 {
			a.measure()
		}
		if now := value(a, change{a.broken, a.cost}); now < a.bestValue {
			a.best, a.bestValue = slices.Clone(a.at), now
		}
		temperature *= factor
	}
}

// probe finds the temperature at which a mean move for the worse is accepted as often as acceptFirst says.
func (a *annealer) probe(value func(*annealer, change) float64) float64 {
	sum, n := 0.0, 0
	for range probes {
		m := a.propose()
		if !m.possible {
			continue
		}
		if worse := value(a, a.apply(m)); worse > epsilon*epsilon && !math.IsInf(worse, 1) {
			sum += worse
			n++
		}
		a.undo(m)
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n) / -math.Log(acceptFirst)
}

// propose draws a move.
func (a *annealer) propose() (m move) {
	m.i, m.j = int32(a.r.IntN(len(a.at))), -1
	from := a.at[m.i]
	m.from = [2]NodeID{from, from}
	var to NodeID
	switch p := a.r.Float64(); {
	case p < pairShare:
		return a.pair(m)
	case p < pairShare+nearShare && len(a.d.App.peers[m.i]) > 0:
		peers := a.d.App.peers[m.i]
		g := &a.s.topo.groups[a.s.topo.above[a.at[peers[a.r.IntN(len(peers))].service]]]
		to = g.lo + NodeID(a.r.IntN(int(g.hi-g.lo)))
		m.possible = to != from && a.may(m.i, to)
	default:
		to = a.draw(m.i)
		m.possible = to != from
	}
	m.to = [2]NodeID{to, to}
	return m
}

// pair makes a move one of two microservices.
func (a *annealer) pair(m move) move {
	m.j = int32(a.r.IntN(len(a.at)))
	there := a.at[m.j]
	m.from[1], m.to = there, [2]NodeID{there, m.from[0]}
	if a.r.IntN(2) == 0 {
		m.to[1] = a.draw(m.j)
	}
	m.possible = there != m.from[0] && m.to[1] != there && a.may(m.i, there) && a.may(m.j, m.to[1])
	return m
}

// draw draws a node that a microservice may be on.
func (a *annealer) draw(i int32) NodeID {
	return a.candidates[i][a.r.IntN(len(a.candidates[i]))]
}

// apply moves, and says what that changes.
func (a *annealer) apply(m move) (c change) {
	before := a.around(m)
	a.exchange(m, m.to)
	after := a.around(m)
	return change{after.broken - before.broken, after.cost - before.cost}
}

func (a *annealer) undo(m move) { a.exchange(m, m.from) }

func (a *annealer) exchange(m move, to [2]NodeID) {
	a.lift(m.i)
	if m.j >= 0 {
		a.lift(m.j)
		a.put(m.j, to[1])
	}
	a.put(m.i, to[0])
}

// around is what the nodes and the microservices of a move contribute.
func (a *annealer) around(m move) (c change) {
	for k, id := range [3]NodeID{m.from[0], m.to[0], m.to[1]} {
		if k == 2 && (id == m.from[0] || id == m.to[0]) {
			break
		}
		c.broken += a.overfull(id)
		c.cost += a.perNode * curve(a.cores(id, a.nodes[id].free[Cores]))
	}
	a.contribute(m.i, -1, &c)
	if m.j >= 0 {
		a.contribute(m.j, m.i, &c)
	}
	return c
}

// contribute adds what a microservice does, but for what it has to do with another.
func (a *annealer) contribute(i, but int32, c *change) {
	id := a.at[i]
	c.broken += a.tooClose(i, id)
	if but >= 0 && a.s.topo.above[id] == a.s.topo.above[a.at[but]] && slices.Contains(a.d.App.rivals[i], but) {
		c.broken-- // counted from the other side
	}
	c.cost += a.move(i, id) - a.perNode*a.alone(i, id)
	for _, p := range a.d.App.peers[i] {
		if p.service != but {
			c.cost += a.perHop * float64(p.traffic) * float64(a.s.topo.Hops(id, a.at[p.service]))
		}
	}
}

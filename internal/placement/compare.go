package placement

import (
	"fmt"
	"math"
	"slices"
)

// Compare says how the node of a microservice that is deployed compares with the others, all else staying where it is: for each level of nodes from
// its own, which constraints forbid them, and what the app would cost more on the cheapest that fits. It is what Anneal and ILP explain,
// but that no move has a cost. O(nodes (edges of the microservice)).
func (s *State) Compare(d *Deployment, i int, w Weights) Decision {
	c := s.costs(d, w)
	for k := range c.from {
		c.from[k] = Nowhere
	}
	return c.compare(i)
}

// explain tells of all microservices of the app.
func (c *costs) explain(to func(Decision)) {
	for i := range c.d.at {
		if to != nil {
			to(c.compare(i))
		}
	}
}

func (c *costs) compare(i int) Decision {
	s, at := c.s, c.d.at[i]
	v := &c.d.App.Services[i]
	why := Decision{App: c.d.App.Name, Service: v.Name, Pinned: v.Node != "", Compared: true}
	if at == Nowhere {
		return why
	}
	tasks := slices.Clone(s.nodes[at].tasks)
	s.lift(c.d, int32(i))
	q := s.ask(c.d, int32(i))
	why.Node, why.Caller, why.Level, why.Where = s.topo.name(at), s.topo.name(at), 1, s.topo.levelName(at, 1)
	why.Short, why.Cost = q.lack(at), c.adds(int32(i), at)
	s.topo.levels(at, func(l *level) bool {
		cheapest, least := Nowhere, math.Inf(1)
		t := q.trial(l.number, func(visit func(NodeID)) {
			for _, id := range s.topo.nodesOf(l) {
				visit(id)
				if !q.fits(id) {
					continue
				}
				if cost := c.adds(int32(i), id); cost < least {
					cheapest, least = id, cost
				}
			}
		})
		t.Where = s.topo.levelName(at, l.number)
		if cheapest != Nowhere {
			t.Next, t.More = s.topo.name(cheapest), least-why.Cost
		}
		why.Trials = append(why.Trials, t)
		return true
	})
	s.put(c.d, int32(i), at)
	copy(s.nodes[at].tasks, tasks) // in the order that they had
	return why
}

// adds is what a microservice that is nowhere would add to the cost on a node.
func (c *costs) adds(i int32, id NodeID) float64 {
	free, need := c.s.nodes[id].free[Cores], c.d.App.Services[i].demand(c.s.topo.nodes[id].Kind.ordinal())[Cores]
	sum := c.move(i, id) + c.perNode*(curve(c.cores(id, free-need))-curve(c.cores(id, free))-c.alone(i, id))
	for _, p := range c.d.App.peers[i] {
		if at := c.d.at[p.service]; at != Nowhere {
			sum += c.perHop * float64(p.traffic) * float64(c.s.topo.Hops(id, at))
		}
	}
	return sum
}

// next is the cheapest other node of all levels, nil if none fits.
func (d *Decision) next() (best *Trial) {
	for i := range d.Trials {
		if t := &d.Trials[i]; t.Next != "" && (best == nil || t.More < best.More) {
			best = t
		}
	}
	return best
}

// costs says how much the app costs elsewhere.
func (t *Trial) costs() string {
	if t.More < -epsilon {
		return fmt.Sprintf("on %s the app would cost %.4f less", t.Next, -t.More)
	}
	return fmt.Sprintf("the next best, %s, costs %.4f more", t.Next, max(0, t.More))
}

// compared is Why of a comparison.
func (d *Decision) compared() string {
	why := fmt.Sprintf("where it adds %.4f to the app's cost", d.Cost)
	switch next := d.next(); {
	case d.Short != Vector{}:
		return fmt.Sprintf("%s, and lacks %s", why, d.Short)
	case next == nil:
		return why + "; no other one fits as the others are placed"
	default:
		return why + "; " + next.costs()
	}
}

package placement

import (
	"fmt"
	"math"
)

// Comparison says how a microservice's node compares with the others, all else staying where it is: why annealing or the ILP left it there.
type Comparison struct {
	Trial         // of all nodes
	Next  string  // the cheapest of the other nodes that fit; "" if none does
	More  float64 // what the app would cost more there
}

// Compare compares the node of a microservice that is deployed. O(nodes + (microservices + edges) nodes that fit).
func (s *State) Compare(d *Deployment, i int, w Weights) Comparison {
	at, cost := d.at[i], s.Cost(d, w)
	s.lift(d, int32(i))
	q := s.ask(d, int32(i))
	var fit []NodeID
	c := Comparison{More: math.Inf(1), Trial: q.trial(0, func(visit func(NodeID)) {
		for id := range s.nodes {
			visit(NodeID(id))
			if q.fits(NodeID(id)) && NodeID(id) != at {
				fit = append(fit, NodeID(id))
			}
		}
	})}
	for _, id := range fit {
		s.put(d, int32(i), id)
		if more := s.Cost(d, w) - cost; more < c.More {
			c.Next, c.More = s.topo.name(id), more
		}
		s.lift(d, int32(i))
	}
	if at != Nowhere {
		s.put(d, int32(i), at)
	}
	return c
}

// String is a line of text.
func (c *Comparison) String() string {
	switch {
	case c.Next == "":
		return c.Trial.String() + "; no other one fits as the others are placed"
	case c.More < -epsilon:
		return fmt.Sprintf("%s; on %s the app would cost %.4f less, with this policy's weights", c.Trial.String(), c.Next, -c.More)
	}
	return fmt.Sprintf("%s; the next best, %s, costs %.4f more", c.Trial.String(), c.Next, max(0, c.More))
}

package placement

import "fmt"

// Shortage looks for a proof that an app has no placement, in words: a microservice that fits on none of its nodes even if no other one of the app
// is there, or microservices that together need more than all of their nodes have. It is "" if it finds none, though there may be no placement.
// O(microservices nodes).
func (s *State) Shortage(d *Deployment) string {
	free := make([]Vector, len(s.nodes))
	c := costs{s: s, d: d}
	for id := range free {
		free[id] = c.without(NodeID(id))
	}
	for i := range d.App.Services {
		if text := s.tooLarge(&d.App.Services[i], free); text != "" {
			return text
		}
	}
	for _, g := range s.sharing(d.App) {
		if text := s.tooMany(d.App, g, free); text != "" {
			return text
		}
	}
	return ""
}

// tooLarge says what the nearest node lacks for a microservice that fits on none.
func (s *State) tooLarge(v *Service, free []Vector) string {
	nearest, least, tried := Nowhere, 0.0, 0
	for id := range free {
		n := &s.topo.nodes[id]
		if s.nodes[id].down || v.identity(n) != Met {
			continue
		}
		tried++
		lacks := s.topo.share.missing(&free[id], v.demand(n.Kind.ordinal()))
		if lacks == 0 {
			return ""
		}
		if nearest == Nowhere || lacks < least {
			nearest, least = NodeID(id), lacks
		}
	}
	if nearest == Nowhere {
		return fmt.Sprintf("microservice %q has no node that it may be on", v.Name)
	}
	lack := lacking(&free[nearest], v.demand(s.topo.nodes[nearest].Kind.ordinal()))
	return fmt.Sprintf("microservice %q fits on none of the %d nodes that it may be on: the nearest, %s, lacks %s", v.Name, tried, s.topo.name(nearest), lack)
}

// lacking is what is short of a need.
func lacking(free, need *Vector) (lack Vector) {
	for r := range lack {
		lack[r] = max(0, need[r]-free[r])
	}
	return lack
}

// sharing is a group of nodes, which some microservices cannot leave.
type sharing struct {
	which    string // of the microservices, in words
	includes func(*Node) bool
	bound    func(*Service) bool
}

// sharing are the groups that are looked at: each node to which some are pinned, the NICs, the hosts, and all nodes.
func (s *State) sharing(a *App) (all []sharing) {
	seen := make(map[string]bool)
	for i := range a.Services {
		if pin := a.Services[i].Node; pin != "" && !seen[pin] {
			seen[pin] = true
			all = append(all, sharing{" pinned to " + pin, func(n *Node) bool { return n.Name == pin }, func(v *Service) bool { return v.Node == pin }})
		}
	}
	for _, k := range [kinds]Kind{NIC, Host} {
		only := func(v *Service) bool { return v.allows(k) && !(v.allows(NIC) && v.allows(Host)) }
		all = append(all, sharing{fmt.Sprintf(" that have to be on a %s", k), func(n *Node) bool { return n.Kind == k }, only})
	}
	return append(all, sharing{"", func(*Node) bool { return true }, func(*Service) bool { return true }})
}

// tooMany says what a group of nodes lacks for the microservices that cannot leave it. Of one that may be on both kinds, it counts what it
// takes at least.
func (s *State) tooMany(a *App, g sharing, free []Vector) string {
	var have, need Vector
	for id := range free {
		if n := &s.topo.nodes[id]; !s.nodes[id].down && g.includes(n) {
			for r := range have {
				have[r] += max(0, free[id][r])
			}
		}
	}
	count := 0
	for i := range a.Services {
		v := &a.Services[i]
		if !g.bound(v) {
			continue
		}
		count++
		least := v.least()
		need.add(&least)
	}
	lack := lacking(&have, &need)
	if lack == (Vector{}) {
		return ""
	}
	return fmt.Sprintf("its %d microservices%s together need %s more than is free on the nodes that they may be on", count, g.which, lack)
}

// least is what a microservice takes on the kind of node where it takes less, of each resource.
func (s *Service) least() Vector {
	least := *s.demand(Host.ordinal())
	nic := s.demand(NIC.ordinal())
	for r := range least {
		switch {
		case !s.allows(Host):
			least[r] = nic[r]
		case s.allows(NIC):
			least[r] = min(least[r], nic[r])
		}
	}
	return least
}

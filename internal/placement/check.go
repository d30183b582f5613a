package placement

import "fmt"

// Violation is a constraint that a placement breaks.
type Violation struct {
	App, Service string // "" where Node as a whole has too little
	Node         string
	Constraint   Constraint
	Short        int64 // of a resource: what is lacking; of Colocated: how many are too many
}

// Error says what is wrong.
func (v Violation) Error() string {
	if r, ok := v.Constraint.Resource(); ok {
		return fmt.Sprintf("node %q lacks %s", v.Node, r.amount(v.Short))
	}
	if v.Constraint == Colocated {
		return fmt.Sprintf("app %q: microservice %q on node %q: %s, %d too many", v.App, v.Service, v.Node, v.Constraint, v.Short)
	}
	return fmt.Sprintf("app %q: microservice %q on node %q: %s", v.App, v.Service, v.Node, v.Constraint)
}

// Check lists all constraints that what is deployed breaks. It counts what nodes have from the beginning, and trusts no index.
// O(nodes + microservices + pairs that have to be apart).
func (s *State) Check() (all []Violation) {
	free := make([]Vector, len(s.nodes))
	count := make([]int, len(s.nodes))
	for id := range free {
		free[id] = s.topo.nodes[id].Capacity
		free[id].sub(&s.nodes[id].load)
	}
	apps := s.Apps()
	for _, d := range apps {
		for i, id := range d.at {
			if id != Nowhere {
				free[id].sub(d.App.Services[i].demand(s.topo.nodes[id].Kind.ordinal()))
				count[id]++
			}
		}
	}
	for _, d := range apps {
		for i, id := range d.at {
			if id == Nowhere {
				continue
			}
			for _, c := range s.broken(d, i, count[id]) {
				v := Violation{App: d.App.Name, Service: d.App.Services[i].Name, Node: s.topo.name(id), Constraint: c}
				if c == Colocated {
					v.Short = int64(count[id] - limit(&d.App.Services[i]))
				}
				all = append(all, v)
			}
		}
	}
	for id := range free {
		for r, left := range free[id] {
			if left < 0 && count[id] > 0 {
				all = append(all, Violation{Node: s.topo.name(NodeID(id)), Constraint: Short(Resource(r)), Short: -left})
			}
		}
	}
	return all
}

// broken lists the constraints of a microservice, but for resources, that its node does not meet.
func (s *State) broken(d *Deployment, i, count int) (all []Constraint) {
	v, id := &d.App.Services[i], d.at[i]
	n := &s.topo.nodes[id]
	if s.nodes[id].down {
		all = append(all, Down)
	}
	if v.Node != "" && v.Node != n.Name {
		all = append(all, Pinned)
	}
	if !v.allows(n.Kind) {
		all = append(all, WrongKind)
	}
	if !n.has(v.Labels) {
		all = append(all, Labels)
	}
	for _, rival := range d.App.rivals[i] {
		if at := d.at[rival]; at != Nowhere && s.topo.above[at] == s.topo.above[id] {
			all = append(all, Apart)
			break
		}
	}
	if count > limit(v) {
		all = append(all, Colocated)
	}
	return all
}

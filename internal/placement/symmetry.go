package placement

import (
	"fmt"
	"slices"
	"strings"
)

// order has no solver look at placements that differ only in which of several like subtrees is which. Of like siblings, each one is used only by
// microservices that come after the first one on the sibling before it: any placement can be renamed so, from the root down.
func (p *program) order() {
	signs := p.signatures()
	topo := p.s.topo
	before := make(map[string]int) // child by its parent and signature: a group, or a node from len(groups) on
	for _, child := range signs.order {
		key := fmt.Sprint(signs.parent[child], " ", signs.of[child])
		if last, ok := before[key]; ok {
			p.after(topo.run(last), topo.run(child))
		}
		before[key] = child
	}
}

// run is the nodes of a group, or a node, numbered from len(groups) on.
func (t *Topology) run(child int) [2]NodeID {
	if id := NodeID(child - len(t.groups)); id >= 0 {
		return [2]NodeID{id, id + 1}
	}
	return [2]NodeID{t.groups[child].lo, t.groups[child].hi}
}

// after has microservice i on b only if one before it is on a.
func (p *program) after(a, b [2]NodeID) {
	for i := range p.x {
		row := p.row(0, false)
		for id := b[0]; id < b[1]; id++ {
			if c, ok := p.x[i][id]; ok {
				p.add(row, c, 1)
			}
		}
		for j := range i {
			for id := a[0]; id < a[1]; id++ {
				if c, ok := p.x[j][id]; ok {
					p.add(row, c, -1)
				}
			}
		}
	}
}

// signatures say which subtrees are alike for the program.
type signatures struct {
	of     []string
	parent []int32
	order  []int
}

func (p *program) signatures() signatures {
	t := p.s.topo
	groups := len(t.groups)
	s := signatures{of: make([]string, groups+len(t.nodes)), parent: make([]int32, groups+len(t.nodes))}
	below := make([][]string, groups)
	for id := range t.nodes {
		at := groups + id
		s.of[at], s.parent[at] = p.signature(NodeID(id)), t.above[id]
		below[t.above[id]] = append(below[t.above[id]], s.of[at])
		s.order = append(s.order, at)
	}
	for g := groups - 1; g > 0; g-- {
		slices.Sort(below[g])
		s.of[g], s.parent[g] = "("+strings.Join(below[g], " ")+")", t.groups[g].above
		below[t.groups[g].above] = append(below[t.groups[g].above], s.of[g])
		s.order = append(s.order, g)
	}
	return s
}

// signature has all that the model knows of a node. One on which the app already runs, or to which a microservice is pinned, is like no other.
func (p *program) signature(id NodeID) string {
	n := &p.s.topo.nodes[id]
	sign := fmt.Sprint(n.Kind, n.Capacity, p.s.nodes[id].free, n.Labels, p.s.nodes[id].down, len(p.s.nodes[id].tasks), p.s.nodes[id].limit)
	special := slices.Contains(p.from, id) || slices.ContainsFunc(p.d.App.Services, func(v Service) bool { return v.Node == n.Name })
	if special {
		sign += fmt.Sprint(" ", id)
	}
	return sign
}

package placement

import "slices"

// The hierarchical levels of a node N (section 3.3): 1 is N itself, 2 the other nodes of its server, and then, for each group further out,
// first the NICs and then the hosts that are below that group and in no level before. In one rack these are the paper's four levels.

// level is one of them: nodes of some kinds that are below a group, without those of the inner run.
type level struct {
	number int
	spans  [2 * kinds]struct {
		span
		kind int
	}
	n int // spans
}

func (l *level) add(kind int, lo, hi int32) {
	if lo < hi {
		l.spans[l.n].kind, l.spans[l.n].span = kind, span{lo, hi}
		l.n++
	}
}

// around adds the nodes of a kind that are in the outer span and not in the inner one.
func (l *level) around(kind int, outer, inner span) {
	l.add(kind, outer.lo, inner.lo)
	l.add(kind, inner.hi, outer.hi)
}

// levels calls visit for each level of a node from 2 on that has nodes, nearest first, until visit returns false. O(depth).
func (t *Topology) levels(id NodeID, visit func(*level) bool) {
	server := t.above[id]
	l := level{number: 2}
	own := t.nodes[id].Kind.ordinal()
	for k := range kinds {
		inner := span{t.groups[server].span[k].hi, t.groups[server].span[k].hi}
		if k == own {
			inner = span{t.rank[id], t.rank[id] + 1}
		}
		l.around(k, t.groups[server].span[k], inner)
	}
	if l.n > 0 && !visit(&l) {
		return
	}
	number := 2
	for inner := server; t.groups[inner].above >= 0; inner = t.groups[inner].above {
		outer := t.groups[inner].above
		for k := range kinds {
			number++
			l := level{number: number}
			l.around(k, t.groups[outer].span[k], t.groups[inner].span[k])
			if l.n > 0 && !visit(&l) {
				return
			}
		}
	}
}

// levelName says which distance from a node a level is.
func (t *Topology) levelName(id NodeID, number int) string {
	switch number {
	case 1:
		return "the same node"
	case 2:
		return "the same server, " + t.Server(id)
	}
	g := t.above[id]
	for range (number - 1) / 2 {
		g = t.groups[g].above
	}
	if number%2 == 1 {
		return "NICs in " + t.groups[g].name
	}
	return "hosts in " + t.groups[g].name
}

// nodesOf lists a level's nodes in tree order.
func (t *Topology) nodesOf(l *level) (ids []NodeID) {
	for _, s := range l.spans[:l.n] {
		ids = append(ids, t.byKind[s.kind][s.lo:s.hi]...)
	}
	slices.Sort(ids)
	return ids
}

// Level is the nodes at one distance from a node.
type Level struct {
	Number int      // 1 is the node itself, see section 3.3
	Nodes  []NodeID // in tree order
}

// Levels are the hierarchical levels of a node that have nodes, nearest first. Every node is in one of them. O(nodes log nodes).
func (t *Topology) Levels(id NodeID) []Level {
	all := []Level{{1, []NodeID{id}}}
	t.levels(id, func(l *level) bool {
		all = append(all, Level{l.number, t.nodesOf(l)})
		return true
	})
	return all
}

package placement

import (
	"math"
	"math/bits"
	"slices"
)

// Replacement is what Replace did.
type Replacement struct {
	Moves []Moved
	Cost  int64 // of the moves: the sum of the microservices' move costs
	// Refused are microservices that fit nowhere. They were left on their nodes where these lack resources only, and otherwise run nowhere now.
	Refused []*RefusedError
	Broken  []Violation // that are left: of the refused, or of nodes that pinned microservices overload
}

// Moved is a microservice that is on another node than before.
type Moved struct {
	App, Service string
	From, To     NodeID // Nowhere where it ran nowhere
	Cost         int64
}

// Replace mends what is deployed after nodes went down (SetDown) or away (Move), loads changed (SetLoad) or apps were added. What meets its
// constraints stays where it is. Of a node that has too much to do, the microservices go whose moves cost the least in sum, which is exact
// for up to 12 on a node, and beyond that takes those that relieve the node most for their cost. Pinned ones stay, even if all others going
// is not enough. Those that go, and those that run nowhere, are placed as HCM does, seen from one that calls them, or that they call if none does.
//
// Replace moves nothing else out of the way: what fits nowhere is in Refused, though another placement of everything might have room.
func (s *State) Replace(o Options) Replacement {
	apps := s.Apps()
	before := make([][]NodeID, len(apps))
	for k, d := range apps {
		before[k] = d.Nodes()
	}
	s.evictMisplaced(apps)
	for id := range s.nodes {
		s.evict(NodeID(id))
	}
	var result Replacement
	for k, d := range apps {
		s.settle(d, before[k], o, &result)
	}
	result.Broken = s.Check()
	return result
}

// evictMisplaced takes microservices off nodes on which they cannot be, however much else goes: nodes that are down, have changed, or are on the
// server of one from which they have to be apart. Of two such, the one goes that is cheaper to move.
func (s *State) evictMisplaced(apps []*Deployment) {
	for _, d := range apps {
		for i, id := range d.at {
			if id == Nowhere {
				continue
			}
			if s.nodes[id].down || s.ask(d, int32(i)).identity(id) != Met {
				s.lift(d, int32(i))
			}
		}
		for i, rivals := range d.App.rivals {
			for _, j := range rivals {
				a, b := d.at[i], d.at[j]
				if a == Nowhere || b == Nowhere || s.topo.above[a] != s.topo.above[b] {
					continue
				}
				if s.price(task{d, int32(i)}) < s.price(task{d, j}) {
					s.lift(d, int32(i))
				} else {
					s.lift(d, j)
				}
			}
		}
	}
}

// price is what it costs to move a task; a pinned one cannot.
func (s *State) price(t task) int64 {
	if t.service().Node != "" {
		return math.MaxInt64
	}
	return t.service().moveCost()
}

// fewTasks is for how many all subsets are tried.
const fewTasks = 12

// evict takes tasks off a node until the others fit.
func (s *State) evict(id NodeID) {
	n := &s.nodes[id]
	if s.content(id, nil) || len(n.tasks) == 0 {
		return
	}
	var movable []task
	for _, t := range n.tasks {
		if s.price(t) < math.MaxInt64 {
			movable = append(movable, t)
		}
	}
	var gone []task
	if len(movable) <= fewTasks {
		gone = s.cheapest(id, movable)
	} else {
		gone = s.relieving(id, movable)
	}
	for _, t := range gone {
		s.lift(t.d, t.i)
	}
}

// content says whether a node has room for its tasks without some of them, and none of the others has too many beside it.
func (s *State) content(id NodeID, without []task) bool {
	n := &s.nodes[id]
	free, count, least := n.free, 0, math.MaxInt
	kind := s.topo.nodes[id].Kind.ordinal()
	for _, t := range n.tasks {
		if slices.Contains(without, t) {
			free.add(t.service().demand(kind))
			continue
		}
		count++
		least = min(least, limit(t.service()))
	}
	return count == 0 || free.covers(&Vector{}) && count <= least
}

// cheapest is the set of tasks without which a node is content and whose moves cost the least, the smallest of several; all if none is enough.
func (s *State) cheapest(id NodeID, movable []task) []task {
	best, least := movable, int64(math.MaxInt64)
	subset := make([]task, 0, len(movable))
	for mask := range uint(1) << len(movable) {
		subset = subset[:0]
		cost := int64(0)
		for k, t := range movable {
			if mask>>k&1 == 1 {
				subset = append(subset, t)
				cost += s.price(t)
			}
		}
		if (cost < least || cost == least && bits.OnesCount(mask) < len(best)) && s.content(id, subset) {
			best, least = slices.Clone(subset), cost
		}
	}
	return best
}

// relieving takes tasks one by one, each the one that relieves the node most for its cost.
func (s *State) relieving(id NodeID, movable []task) (gone []task) {
	free, kind := s.nodes[id].free, s.topo.nodes[id].Kind.ordinal()
	for !s.content(id, gone) && len(gone) < len(movable) {
		var best task
		most := -1.0
		lacks := s.topo.share.missing(&free, &Vector{})
		for _, t := range movable {
			if slices.Contains(gone, t) {
				continue
			}
			then := free
			then.add(t.service().demand(kind))
			if relief := (lacks - s.topo.share.missing(&then, &Vector{})) / float64(s.price(t)); relief > most {
				best, most = t, relief
			}
		}
		free.add(best.service().demand(kind))
		gone = append(gone, best)
	}
	return gone
}

// settle places what runs nowhere.
func (s *State) settle(d *Deployment, before []NodeID, o Options, result *Replacement) {
	h := hcm{s: s, d: d, o: o}
	for _, v := range d.App.breadthFirst() {
		if d.at[v] != Nowhere {
			continue
		}
		if err := h.place(v, h.anchor(v)); err != nil {
			result.Refused = append(result.Refused, err)
			if id := before[v]; id != Nowhere && s.ask(d, v).allows(id) { // only resources give way
				s.put(d, v, id)
			}
			continue
		}
		if d.at[v] != before[v] {
			m := Moved{App: d.App.Name, Service: d.App.Services[v].Name, From: before[v], To: d.at[v]}
			if m.From != Nowhere {
				m.Cost = d.App.Services[v].moveCost()
			}
			result.Cost += m.Cost
			result.Moves = append(result.Moves, m)
		}
	}
}

// anchor is the node from which levels are counted.
func (h *hcm) anchor(v int32) NodeID {
	for _, near := range [][]int32{h.d.App.callers[v], h.d.App.callees[v]} {
		for _, i := range near {
			if h.d.at[i] != Nowhere {
				return h.d.at[i]
			}
		}
	}
	return Nowhere
}

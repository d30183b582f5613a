package placement

import (
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// naive is Algorithm 1 as the paper writes it, with scans of all nodes. It shares with the package only what apps and topologies are: what
// runs where, what is free, and how far apart nodes are, it finds out on its own each time.
type naive struct {
	nodes  []Node
	down   []bool
	server []string
	path   [][]string // groups from a node's server to the root
	apps   []*naiveApp
	most   Vector
}

type naiveApp struct {
	app *App
	at  []int // -1: nowhere
}

func newNaive(topo *Topology, parents map[string]string) *naive {
	n := &naive{}
	for id := range topo.Len() {
		node := *topo.Node(NodeID(id))
		n.nodes = append(n.nodes, node)
		n.down = append(n.down, false)
		n.server = append(n.server, node.Parent)
		var path []string
		for g := node.Parent; g != ""; g = parents[g] {
			path = append(path, g)
		}
		n.path = append(n.path, path)
		for r, c := range node.Capacity {
			n.most[r] = max(n.most[r], c)
		}
	}
	return n
}

func (n *naive) need(s *Service, id int) Vector {
	if s.OnNIC != nil && n.nodes[id].Kind == NIC {
		return *s.OnNIC
	}
	return s.Demand
}

// left is what a node would have left of each resource, and allowed whether all else is met.
func (n *naive) left(a *naiveApp, i, id int) (left Vector, allowed bool) {
	s := &a.app.Services[i]
	node := n.nodes[id]
	allowed = !n.down[id] && (s.Node == "" || s.Node == node.Name) && (s.Kinds == nil || slices.Contains(s.Kinds, node.Kind))
	for k, v := range s.Labels {
		allowed = allowed && node.Labels[k] == v
	}
	count, tightest := 1, s.MaxColocated
	for r := range left {
		left[r] = node.Capacity[r] - node.Load[r] - n.need(s, id)[r]
	}
	for _, other := range n.apps {
		for j, at := range other.at {
			if at < 0 {
				continue
			}
			o := &other.app.Services[j]
			if other == a && n.server[at] == n.server[id] && (slices.Contains(s.Apart, o.Name) || slices.Contains(o.Apart, s.Name)) {
				allowed = false
			}
			if at != id {
				continue
			}
			count++
			if o.MaxColocated > 0 && (tightest == 0 || o.MaxColocated < tightest) {
				tightest = o.MaxColocated
			}
			for r := range left {
				left[r] -= n.need(o, id)[r]
			}
		}
	}
	return left, allowed && (tightest == 0 || count <= tightest)
}

func (n *naive) fits(a *naiveApp, i, id int) bool {
	left, allowed := n.left(a, i, id)
	return allowed && slices.Min(left[:]) >= 0
}

func (n *naive) firstFit(a *naiveApp, i int) int {
	for id := range n.nodes {
		if n.fits(a, i, id) {
			return id
		}
	}
	return -1
}

func (n *naive) closest(a *naiveApp, i int) int {
	best, least := -1, 0.0
	for id := range n.nodes {
		left, allowed := n.left(a, i, id)
		lack := 0.0
		for r := range left {
			lack += float64(max(0, -left[r])) * float64(whole/n.most[r])
		}
		if allowed && (best < 0 || lack < least) {
			best, least = id, lack
		}
	}
	return best
}

func (n *naive) bestFit(a *naiveApp, i int, among []int) int {
	best, least := -1, int64(0)
	for _, id := range among {
		if !n.fits(a, i, id) {
			continue
		}
		left, _ := n.left(a, i, id)
		slack := int64(0)
		for r := range left {
			slack += left[r] * (whole / n.most[r])
		}
		if best < 0 || slack < least {
			best, least = id, slack
		}
	}
	return best
}

// level is the number of the hierarchical level of node b from node a, from section 3.3.
func (n *naive) level(a, b int) int {
	if a == b {
		return 1
	}
	up := slices.IndexFunc(n.path[a], func(g string) bool { return slices.Contains(n.path[b], g) })
	if up == 0 {
		return 2
	}
	if n.nodes[b].Kind == NIC {
		return 2*up + 1
	}
	return 2*up + 2
}

func (n *naive) place(a *naiveApp, w, from int) int {
	levels := make(map[int][]int)
	furthest := 0
	for id := range n.nodes {
		l := n.level(from, id)
		levels[l] = append(levels[l], id)
		furthest = max(furthest, l)
	}
	for l := 1; l <= furthest; l++ {
		if id := n.bestFit(a, w, levels[l]); id >= 0 {
			return id
		}
	}
	return n.firstFit(a, w)
}

// traverse returns false if a microservice has no node, and then where the others are is as it was.
func (n *naive) traverse(a *naiveApp, overcommit bool) bool {
	before := slices.Clone(a.at)
	assign := func(i, id int) bool {
		if id < 0 && overcommit {
			id = n.closest(a, i)
		}
		a.at[i] = id
		return id >= 0
	}
	var queue []int
	for i, s := range a.app.Services { // which the listing does not have: those without a choice go first
		if s.Node != "" && a.at[i] < 0 && !assign(i, n.firstFit(a, i)) {
			a.at = before
			return false
		}
	}
	for i := range a.at {
		if !slices.ContainsFunc(a.app.Edges, func(e Edge) bool { return e.To == a.app.Services[i].Name }) {
			queue = append(queue, i)
		}
	}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		if a.at[v] < 0 && !assign(v, n.firstFit(a, v)) {
			a.at = before
			return false
		}
		for _, e := range a.app.Edges {
			if e.From != a.app.Services[v].Name {
				continue
			}
			w, _ := a.app.ID(e.To)
			if a.at[w] < 0 && !assign(w, n.place(a, w, a.at[v])) {
				a.at = before
				return false
			}
			queue = append(queue, w)
		}
	}
	return true
}

func parentsOf(topo *Topology) map[string]string {
	parents := make(map[string]string)
	for _, g := range topo.groups {
		if g.above >= 0 {
			parents[g.name] = topo.groups[g.above].name
		}
	}
	return parents
}

// HCM decides as the paper's listing does, once what is pinned is placed, on any cluster, for any app, after any history.
func TestHCMIsAlgorithm1(t *testing.T) {
	r := seed.Rand(t)
	var placed, refused, over int
	for range 400 {
		topo := randomTopology(t, r, 12)
		s, n := NewState(topo), newNaive(topo, parentsOf(topo))
		for number := range 6 {
			for id := range topo.Len() {
				if r.IntN(12) == 0 {
					n.down[id] = !n.down[id]
					s.SetDown(NodeID(id), n.down[id])
				}
			}
			app := randomApp(t, r, string(rune('a'+number)), topo, 8)
			d, err := s.Add(app)
			if err != nil {
				t.Fatal(err)
			}
			a := &naiveApp{app: app, at: slices.Repeat([]int{-1}, len(app.Services))}
			n.apps = append(n.apps, a)
			for i := range a.at { // some are deployed already, well or not
				if r.IntN(8) == 0 {
					a.at[i] = r.IntN(topo.Len())
					s.Place(d, i, NodeID(a.at[i]))
				}
			}
			overcommit := r.IntN(2) == 0
			err = s.HCM(d, Options{Overcommit: overcommit})
			if ok := n.traverse(a, overcommit); ok != (err == nil) {
				t.Fatalf("HCM says %v, the listing %v", err, ok)
			}
			for i, at := range a.at {
				if d.Node(i) != NodeID(at) {
					t.Fatalf("%s is on %s, and by the listing on %s", app.Services[i].Name, topo.name(d.Node(i)), topo.name(NodeID(at)))
				}
			}
			switch {
			case err != nil:
				refused++
			case overcommit:
				over++
			default:
				placed++
			}
			if r.IntN(3) == 0 {
				gone := r.IntN(len(n.apps))
				for _, d := range s.Apps() {
					if d.App == n.apps[gone].app {
						s.Remove(d)
					}
				}
				n.apps = slices.Delete(n.apps, gone, gone+1)
			}
		}
	}
	if min(placed, refused, over) < 100 {
		t.Errorf("%d placed, %d refused, %d perhaps overcommitted: some are too few to say much", placed, refused, over)
	}
}

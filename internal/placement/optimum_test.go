package placement

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// cost is the cost of where an app is, from its definition.
func (n *naive) cost(a *naiveApp, from []int, w Weights) (sum float64) {
	square := func(u float64) float64 { // between points at eighths
		k := math.Min(7, math.Floor(8*u))
		low, high := k/8, (k+1)/8
		return low*low + (u-low)/(high-low)*(high*high-low*low)
	}
	share := func(s *Service, id int) float64 {
		return float64(n.need(s, id)[Cores]) / float64(n.nodes[id].Capacity[Cores])
	}
	for id := range n.nodes {
		base, own := float64(n.nodes[id].Load[Cores])/float64(n.nodes[id].Capacity[Cores]), 0.0
		part := 0.0
		for _, other := range n.apps {
			for i, at := range other.at {
				switch {
				case at != id:
				case other == a:
					own += share(&a.app.Services[i], id)
					part += square(share(&a.app.Services[i], id))
				default:
					base += share(&other.app.Services[i], id)
				}
			}
		}
		sum += w.Interference / float64(len(a.at)) * (square(base+own) - square(base) - part)
	}
	var traffic, links, moved, all float64
	widest := 0
	for x := range n.nodes {
		widest = max(widest, 2*len(n.path[x]))
	}
	for _, e := range a.app.Edges {
		i, _ := a.app.ID(e.From)
		j, _ := a.app.ID(e.To)
		traffic += float64(e.Traffic)
		if x, y := a.at[i], a.at[j]; x != y {
			common := 0
			for _, g := range n.path[x] {
				if slices.Contains(n.path[y], g) {
					common++
				}
			}
			links += float64(e.Traffic) * float64(2+len(n.path[x])+len(n.path[y])-2*common)
		}
	}
	if traffic > 0 {
		sum += w.Communication * links / traffic / float64(widest)
	}
	for i := range a.at {
		s := &a.app.Services[i]
		price := 1.0
		if s.Stateful {
			price = 10
		}
		all += price
		if from[i] >= 0 && from[i] != a.at[i] {
			moved += price
		}
	}
	return sum + w.Move*moved/all
}

// optimum is the least cost of any placement that meets all constraints, or infinite.
func (n *naive) optimum(a *naiveApp, from []int, w Weights, i int) float64 {
	if i == len(a.at) {
		for j, id := range slices.Clone(a.at) {
			a.at[j] = -1
			ok := n.fits(a, j, id)
			a.at[j] = id
			if !ok {
				return math.Inf(1)
			}
		}
		return n.cost(a, from, w)
	}
	best := math.Inf(1)
	for id := range n.nodes {
		if n.fits(a, i, id) { // constraints only get tighter
			a.at[i] = id
			best = min(best, n.optimum(a, from, w, i+1))
			a.at[i] = -1
		}
	}
	return best
}

// scene is a small cluster with an app to place and perhaps one that is there.
type scene struct {
	s    *State
	n    *naive
	d    *Deployment
	a    *naiveApp
	from []int
	best float64
}

func randomScene(t *testing.T, next func(int) int, topo *Topology, other, app *App, w Weights) *scene {
	t.Helper()
	c := &scene{s: NewState(topo), n: newNaive(topo, parentsOf(topo))}
	for k, app := range []*App{other, app} {
		d, err := c.s.Add(app)
		if err != nil {
			t.Fatal(err)
		}
		a := &naiveApp{app: app, at: slices.Repeat([]int{-1}, len(app.Services))}
		c.n.apps = append(c.n.apps, a)
		c.d, c.a = d, a
		for i := range a.at {
			if id := next(topo.Len()); c.n.fits(a, i, id) && (k == 0 || next(3) == 0) {
				a.at[i] = id
				c.s.Place(d, i, NodeID(id))
			}
		}
	}
	c.from = slices.Clone(c.a.at)
	for i := range c.a.at {
		c.a.at[i] = -1
	}
	c.best = c.n.optimum(c.a, c.from, w, 0)
	return c
}

// cost is that of where the app now is, after all constraints were found to hold.
func (c *scene) cost(t *testing.T, w Weights) float64 {
	t.Helper()
	for i, id := range c.d.Nodes() {
		c.a.at[i] = int(id)
	}
	for i, id := range slices.Clone(c.a.at) {
		c.a.at[i] = -1
		if !c.n.fits(c.a, i, id) {
			t.Fatalf("%s does not fit on %s", c.a.app.Services[i].Name, c.n.nodes[id].Name)
		}
		c.a.at[i] = id
	}
	if broken := c.s.Check(); len(broken) > 0 {
		t.Fatalf("Check: %v", broken)
	}
	return c.n.cost(c.a, c.from, w)
}

func (c *scene) undo() {
	for i, id := range c.from {
		c.s.Place(c.d, i, NodeID(id))
	}
}

func uniformTopology(t *testing.T, servers, nics int) *Topology {
	t.Helper()
	topo, err := FatTree{Servers: servers, NICs: nics, NIC: Vector{5, 5, 5, 5, 5}, Host: Vector{6, 6, 6, 6, 6}}.Topology()
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

const annealingBound = 1.25 // of the optimum, for one microservice in 20; the others are at it

// The ILP's answer is the optimum that trying everything finds, and annealing's is near it; both know when there is none.
func TestOptimum(t *testing.T) {
	if _, err := findSolver(""); err != nil {
		t.Fatal(err) // tools/deps installs one
	}
	r := seed.Rand(t)
	w := Weights{Interference: 10, Communication: 3, Move: 0.5}
	var solved, impossible, missed, proved int
	for solved < 25 || impossible < 25 {
		topo := randomTopology(t, r, 4)
		if r.IntN(2) == 0 { // of nodes that are alike, which the ILP does not tell apart
			topo = uniformTopology(t, 1+r.IntN(2), r.IntN(3))
		}
		c := randomScene(t, r.IntN, topo, randomApp(t, r, "other", topo, 3), randomApp(t, r, "app", topo, 4), w)
		possible := !math.IsInf(c.best, 1)
		var refused *RefusedError
		if why := c.s.Shortage(c.d); possible && why != "" {
			t.Errorf("there is a placement, but %s", why)
		} else if why != "" {
			proved++
		}

		err := c.s.ILP(context.Background(), c.d, ILPOptions{Weights: w})
		switch {
		case possible && err != nil:
			t.Fatalf("ILP: %v, but there is a placement that costs %g", err, c.best)
		case possible:
			if cost := c.cost(t, w); math.Abs(cost-c.best) > 1e-6 {
				t.Errorf("the ILP's placement costs %g, and the best %g", cost, c.best)
			}
			c.undo()
		case !errors.Is(err, ErrInfeasible) && !errors.As(err, &refused):
			t.Errorf("ILP: %v, but no placement meets all constraints", err)
		}

		err = c.s.Anneal(c.d, AnnealOptions{Seed: r.Uint64(), MovesPer: 300, Weights: w})
		switch {
		case possible && err != nil:
			t.Errorf("annealing: %v, but there is a placement that costs %g", err, c.best)
		case possible:
			solved++
			if cost := c.cost(t, w); cost > annealingBound*c.best+1e-9 {
				t.Errorf("annealing's placement costs %g, and the best %g", cost, c.best)
			} else if cost > c.best+1e-9 {
				missed++
			}
		default:
			impossible++
			if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrInfeasible) && !errors.As(err, &refused) {
				t.Errorf("annealing: %v, but no placement meets all constraints", err)
			}
		}
	}
	if 4*proved < impossible {
		t.Errorf("of %d without a placement, only %d are told why", impossible, proved)
	}
	if 20*missed > solved {
		t.Errorf("of %d placements by annealing, %d are not the best", solved, missed)
	}
}

package placement

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// What is compared stays where it is, and the next best is what moving it there says.
func TestCompare(t *testing.T) {
	s := rackOf(t)
	d := addApp(t, s, "name: x\nservices: [{name: a, demand: {millicores: 3000}, kinds: [nic]}, {name: b, demand: {millicores: 3000}}]\nedges: [{from: a, to: b, traffic: 10}]")
	if err := s.Anneal(d, AnnealOptions{}); err != nil {
		t.Fatal(err)
	}
	before := d.Nodes()
	c := s.Compare(d, 1, DefaultWeights)
	if !slices.Equal(before, d.Nodes()) {
		t.Errorf("they were on %v, and are on %v", before, d.Nodes())
	}
	cost := s.Cost(d, DefaultWeights)
	fit := 0
	for _, trial := range c.Trials {
		least, next := 0.0, ""
		for _, l := range s.topo.Levels(before[1]) {
			for _, id := range l.Nodes {
				if s.Place(d, 1, id); l.Number != trial.Level || len(s.Check()) > 0 {
					continue
				}
				fit++
				if more := s.Cost(d, DefaultWeights) - cost; next == "" || more < least {
					least, next = more, s.topo.name(id)
				}
			}
		}
		if trial.Next != next || math.Abs(trial.More-least) > 1e-12 {
			t.Errorf("%+v, want %s for %v", trial, next, least)
		}
		s.Place(d, 1, before[1])
	}
	s.Place(d, 1, Nowhere)
	if without := s.Cost(d, DefaultWeights); fit != 2 || math.Abs(without+c.Cost-cost) > 1e-12 {
		t.Errorf("%d others fit; %g without it, and %+v", fit, without, c)
	}
	s.Place(d, 1, before[1])
	alone := addApp(t, s, "name: y\nservices: [{name: a, node: server0/host}]")
	if err := s.HCM(alone, Options{}); err != nil {
		t.Fatal(err)
	}
	one := s.Compare(alone, 0, DefaultWeights)
	const want = `a: server0/host is where it adds 0.0000 to the app's cost; no other one fits as the others are placed
	level 2 (the same server, server0), 1 node: 1 refused by pinned elsewhere
	level 3 (NICs in rack0), 1 node: 1 refused by pinned elsewhere
	level 4 (hosts in rack0), 1 node: 1 refused by pinned elsewhere`
	if got := one.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// What annealing and the ILP explain agrees with a look at every node, with the cost from its definition, that of moves too. From an optimum, no
// microservice is better off elsewhere.
func TestDecisionsOfCost(t *testing.T) {
	r := seed.Rand(t)
	w := Weights{Interference: 10, Communication: 3, Move: 0.5}
	decisions, next := 0, 0
	for decisions < 150 || next < 60 {
		topo := randomTopology(t, r, 3)
		c := randomScene(t, r.IntN, topo, randomApp(t, r, "other", topo, 3), randomApp(t, r, "app", topo, 4), w)
		var said []Decision
		explain := func(d Decision) { said = append(said, d) }
		optimal := r.IntN(3) == 0
		if optimal {
			_ = c.s.ILP(t.Context(), c.d, ILPOptions{Weights: w, Explain: explain})
		} else {
			_ = c.s.Anneal(c.d, AnnealOptions{Seed: r.Uint64(), MovesPer: 20, Weights: w, Explain: explain})
		}
		if said != nil && len(said) != len(c.d.at) {
			t.Fatalf("%d decisions of %d", len(said), len(c.d.at))
		}
		for i := range said {
			decisions++
			next += c.checkCosts(t, i, &said[i], w, optimal)
		}
	}
}

// checkCosts checks a decision, and counts its levels with a node that fits.
func (c *scene) checkCosts(t *testing.T, i int, why *Decision, w Weights, optimal bool) (next int) {
	t.Helper()
	cost := c.cost(t, w)
	at := c.a.at[i]
	if why.Node != c.n.nodes[at].Name || why.App != "app" || why.Service != c.a.app.Services[i].Name {
		t.Fatalf("%+v, but it is on %s", why, c.n.nodes[at].Name)
	}
	nodes := 1
	for k := range why.Trials {
		trial := &why.Trials[k]
		least, fit, all := math.Inf(1), 0, 0
		c.a.at[i] = -1
		for id := range c.n.nodes {
			if id == at || c.n.level(at, id) != trial.Level {
				continue
			}
			all++
			if c.n.fits(c.a, i, id) {
				fit++
				c.a.at[i] = id
				least = min(least, c.n.cost(c.a, c.from, w)-cost)
				c.a.at[i] = -1
			}
		}
		c.a.at[i] = at
		nodes += all
		if trial.Nodes != all || trial.Fitting() != fit || (fit > 0) != (trial.Next != "") || fit > 0 && math.Abs(trial.More-least) > 1e-9 {
			t.Fatalf("%+v, but %d nodes, %d fit, for %g more", trial, all, fit, least)
		}
		if fit > 0 {
			next++
		}
		if fit > 0 && optimal && trial.More < -1e-6 {
			t.Fatalf("an optimum gets better: %s", why)
		}
	}
	if nodes != len(c.n.nodes) {
		t.Fatalf("%d nodes of %d: %s", nodes, len(c.n.nodes), why)
	}
	return next
}

// What has no placement says which constraint is short, and by how much, though no single microservice or sum shows it.
func TestInfeasibleSaysWhy(t *testing.T) {
	for _, c := range []struct{ services, want string }{
		{"[{name: a, demand: {memory: 40000}}, {name: b, demand: {memory: 40000}}, {name: c, demand: {memory: 40000}}]", `/host" lacks 14464 MiB memory`},
		{"[{name: a, apart: [b, c]}, {name: b, apart: [c]}, {name: c}]", `: apart`},
		{"[{name: a, max_colocated: 1, kinds: [nic]}, {name: b, max_colocated: 1, kinds: [nic]}, {name: c, max_colocated: 1, kinds: [nic]}]", `/nic0": max_colocated, 1 too many`},
	} {
		s := rackOf(t)
		d := addApp(t, s, "name: x\nservices: "+c.services)
		for want, err := range map[error]error{ErrNotFound: s.Anneal(d, AnnealOptions{}), ErrInfeasible: s.ILP(t.Context(), d, ILPOptions{})} {
			broken, ok := errors.AsType[Violations](err)
			if !errors.Is(err, want) || !ok || !strings.Contains(broken.Error(), c.want) || !strings.Contains(err.Error(), broken.Error()) {
				t.Errorf("%s: %v, want %v: %s", c.services, err, want, c.want)
			}
		}
		if slices.ContainsFunc(d.at, func(id NodeID) bool { return id != Nowhere }) {
			t.Errorf("%s: something was placed", c.services)
		}
	}
}

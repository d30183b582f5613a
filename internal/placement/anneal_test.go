package placement

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// A seed has one result; another one has another. Constraints hold, and it costs less than HCM's placement, which wants something else.
func TestAnneal(t *testing.T) {
	topo, err := Type2(4).Topology()
	if err != nil {
		t.Fatal(err)
	}
	anneal := func(seed uint64) ([]NodeID, float64) {
		s := NewState(topo)
		d, err := s.Add(e3App(t, 60))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Anneal(d, AnnealOptions{Seed: seed}); err != nil {
			t.Fatal(err)
		}
		if broken := s.Check(); len(broken) > 0 {
			t.Fatal(broken)
		}
		return d.Nodes(), s.Cost(d, DefaultWeights)
	}
	first, cost := anneal(1)
	if again, _ := anneal(1); !slices.Equal(first, again) {
		t.Error("the same seed had another result")
	}
	if other, _ := anneal(2); slices.Equal(first, other) {
		t.Error("another seed had the same result")
	}
	s := NewState(topo)
	d, _ := s.Add(e3App(t, 60))
	if err := s.HCM(d, Options{}); err != nil {
		t.Fatal(err)
	}
	if hcm := s.Cost(d, DefaultWeights); cost > hcm/2 {
		t.Errorf("annealing costs %g, HCM %g", cost, hcm)
	}
}

// What the annealer adds up move by move is what a count from the beginning gives.
func TestAnnealAddsUp(t *testing.T) {
	r := seed.Rand(t)
	for range 60 {
		topo := randomTopology(t, r, 8)
		s := NewState(topo)
		var d *Deployment
		for _, name := range []string{"a", "b"} {
			var err error
			if d, err = s.Add(randomApp(t, r, name, topo, 8)); err != nil {
				t.Fatal(err)
			}
			_ = s.HCM(d, Options{Overcommit: true})
		}
		a, err := newAnnealer(s, d, AnnealOptions{Seed: r.Uint64(), Weights: DefaultWeights})
		if err != nil {
			continue
		}
		a.begin(r.IntN(2))
		broken, cost := a.broken, a.cost
		for range 200 {
			if m := a.propose(); m.possible {
				c := a.apply(m)
				if r.IntN(3) == 0 {
					a.undo(m)
					continue
				}
				broken += c.broken
				cost += c.cost
			}
		}
		a.measure()
		if math.Abs(a.broken-broken) > epsilon || math.Abs(a.cost-cost) > 1e-9*max(1, math.Abs(cost)) {
			t.Fatalf("added up, %g is broken and the cost is %g; counted, %g and %g", broken, cost, a.broken, a.cost)
		}
	}
}

// A heavy weight on moves keeps a placement as it is.
func TestAnnealMovesCost(t *testing.T) {
	topo, err := Type2(2).Topology()
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(topo)
	d, _ := s.Add(e3App(t, 20))
	if err := s.HCM(d, Options{}); err != nil {
		t.Fatal(err)
	}
	before := d.Nodes()
	if err := s.Anneal(d, AnnealOptions{Seed: 1, Weights: Weights{Interference: 10, Communication: 1, Move: 1e6}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, d.at) {
		t.Errorf("it moved from %v to %v", before, d.at)
	}
	if err := s.Anneal(d, AnnealOptions{Seed: 1, Weights: Weights{Interference: 10, Communication: 1, Move: 1e-3}}); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before, d.at) {
		t.Error("it did not move, though moves cost little")
	}
}

func TestAnnealRefuses(t *testing.T) {
	s, d := pair(t)
	if err := s.Anneal(d, AnnealOptions{MovesPer: -1}); err == nil {
		t.Error("-1 moves were taken")
	}
	if err := s.Anneal(d, AnnealOptions{Weights: Weights{Move: math.NaN()}}); err == nil {
		t.Error("a weight that is no number was taken")
	}
	for id := range NodeID(2) {
		if err := s.SetLoad(id, Vector{Cores: 11000}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Anneal(d, AnnealOptions{}); !errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), `microservice "`) || !strings.Contains(err.Error(), " millicores") {
		t.Errorf("got %v", err)
	}
	s.SetDown(0, true)
	var refused *RefusedError
	if err := s.Anneal(d, AnnealOptions{}); !errors.As(err, &refused) || refused.Decision.Service != "a" {
		t.Errorf("got %v", err)
	}
}

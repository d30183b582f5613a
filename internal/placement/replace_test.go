package placement

import (
	"math"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// Whatever fails or fills up, Replace leaves no constraint broken but where it says so, and moves nothing off nodes that are fine.
func TestReplace(t *testing.T) {
	r := seed.Rand(t)
	var moves, refusals int
	for range 150 {
		topo := randomTopology(t, r, 12)
		s := NewState(topo)
		for _, name := range []string{"a", "b", "c"} {
			d, err := s.Add(randomApp(t, r, name, topo, 6))
			if err != nil {
				t.Fatal(err)
			}
			if s.HCM(d, Options{}) != nil {
				s.Remove(d)
			}
		}
		for range 4 {
			disturb(t, r.IntN, s)
			bad := make(map[string]bool)
			for _, v := range s.Check() {
				bad[v.Node] = true
			}
			before := make(map[string][]NodeID)
			for _, d := range s.Apps() {
				before[d.App.Name] = d.Nodes()
			}
			least := s.leastEvictions()
			result := s.Replace(Options{})
			if len(result.Refused) == 0 && result.Cost != least {
				t.Fatalf("moves cost %d, and the least that mends every node is %d", result.Cost, least)
			}
			if len(result.Refused) == 0 {
				s.onlyPinned(t, result.Broken)
			}
			moved := 0
			for _, d := range s.Apps() {
				for i, id := range before[d.App.Name] {
					if id != d.Node(i) && d.Node(i) != Nowhere {
						moved++
					}
					if id != Nowhere && id != d.Node(i) && !bad[topo.name(id)] {
						t.Fatalf("%s moved off %s, which is fine", d.App.Services[i].Name, topo.name(id))
					}
				}
			}
			if moved != len(result.Moves) {
				t.Fatalf("%d moved, and Replace says %v", moved, result.Moves)
			}
			moves += moved
			refusals += len(result.Refused)
		}
	}
	if moves < 100 || refusals < 20 {
		t.Errorf("%d moves, %d refusals: too few to say much", moves, refusals)
	}
}

// onlyPinned fails the test if a constraint is broken and not by pinned microservices alone.
func (s *State) onlyPinned(t *testing.T, broken []Violation) {
	t.Helper()
	for _, v := range broken {
		id, _ := s.topo.ID(v.Node)
		if _, short := v.Constraint.Resource(); !short && v.Constraint != Colocated && v.Constraint != Apart {
			t.Fatal(v)
		}
		if slices.ContainsFunc(s.nodes[id].tasks, func(t task) bool { return t.service().Node == "" }) {
			t.Fatalf("%v, but not all that is there is pinned", v)
		}
	}
}

// disturb fails a node, or fills some up.
func disturb(t *testing.T, next func(int) int, s *State) {
	for id := range NodeID(s.topo.Len()) {
		switch next(8) {
		case 0:
			s.SetDown(id, !s.nodes[id].down)
		case 1:
			var load Vector
			for r := range load {
				load[r] = int64(next(8))
			}
			if err := s.SetLoad(id, load); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// leastEvictions is what it costs to mend each node on its own, by trying every set of its microservices.
func (s *State) leastEvictions() (sum int64) {
	for id := range s.nodes {
		n := &s.nodes[id]
		least, movable := int64(math.MaxInt64), int64(0)
		for _, task := range n.tasks {
			if v := task.service(); v.Node == "" {
				movable += map[bool]int64{true: 10, false: 1}[v.Stateful]
			}
		}
		for mask := range 1 << len(n.tasks) {
			free, cost, possible := n.free, int64(0), true
			for k, task := range n.tasks {
				v := task.service()
				switch {
				case mask>>k&1 == 1:
					possible = possible && (v.Node == "" || n.down)
					cost += map[bool]int64{true: 10, false: 1}[v.Stateful]
					free.add(v.demand(s.topo.nodes[id].Kind.ordinal()))
				case n.down:
					possible = false
				}
			}
			if kept := mask != 1<<len(n.tasks)-1; possible && (!kept || slices.Min(free[:]) >= 0) {
				least = min(least, cost)
			}
		}
		if least == math.MaxInt64 { // pinned ones are too many alone: all others go
			least = movable
		}
		sum += least
	}
	return sum
}

// On another topology, what ran on nodes that are still there stays, and Replace places the rest.
func TestMove(t *testing.T) {
	small, err := Type2(3).Topology()
	if err != nil {
		t.Fatal(err)
	}
	large, err := Type2(50).Topology()
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(large)
	d, err := s.Add(e3App(t, 72))
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.at {
		s.Place(d, i, NodeID(i*3%large.Len()))
	}
	if err := s.SetLoad(0, Vector{Memory: 1}); err != nil {
		t.Fatal(err)
	}
	if s, err = s.Move(small); err != nil {
		t.Fatal(err)
	}
	if got := s.Replace(Options{}); len(got.Refused) > 0 || slices.Contains(d.at, Nowhere) {
		t.Errorf("Replace: %+v, at %v", got, d.at)
	}
	if broken := s.Check(); len(broken) > 0 {
		t.Error(broken)
	}
	if s.nodes[0].load != (Vector{Memory: 1}) {
		t.Error("a node that is still there lost its load")
	}
	for i := range d.at {
		if was := i * 3 % large.Len(); was < small.Len() && d.at[i] != NodeID(was) {
			t.Errorf("%s moved, though its node is still there", d.App.Services[i].Name)
		}
	}
}

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// crowd is an app on one host of many, which has the capacity given.
func crowd(t *testing.T, capacity Vector, services []Service) (*State, *Deployment) {
	t.Helper()
	topo, err := FatTree{Servers: 50, Host: capacity}.Topology()
	if err != nil {
		t.Fatal(err)
	}
	s, d := added(t, topo, services, nil)
	for i := range services {
		s.Place(d, i, 0)
	}
	return s, d
}

// alike are n microservices named prefix0 and so on.
func alike(n int, prefix string, s Service) (all []Service) {
	for i := range n {
		s.Name = fmt.Sprint(prefix, i)
		all = append(all, s)
	}
	return all
}

// What moves is what a look at the case says, in whatever order the microservices are.
func TestReplaceMovesLittle(t *testing.T) {
	ten := Vector{10, 10, 10, 10, 10}
	cores := func(n int64) Vector { return Vector{Cores: n} }
	for _, c := range []struct {
		name     string
		services []Service
		moves    int
		cost     int64
	}{
		{"one is not to have others beside it", append(alike(20, "free", Service{}), Service{Name: "alone", MaxColocated: 1}), 1, 1},
		{"the same, which is dear", append(alike(20, "free", Service{}), Service{Name: "alone", MaxColocated: 1, MoveCost: 15}), 1, 15},
		{"so dear that the others go", append(alike(20, "free", Service{}), Service{Name: "alone", MaxColocated: 1, MoveCost: 21}), 20, 20},
		{"the others go, as it is pinned", append(alike(20, "free", Service{}), Service{Name: "alone", MaxColocated: 1, Node: "server0/host"}), 20, 20},
		{"five too many", alike(20, "few", Service{MaxColocated: 15}), 5, 5},
		{"five too many, some cheaper", append(alike(15, "dear", Service{MaxColocated: 15, Stateful: true}), alike(5, "cheap", Service{MaxColocated: 15})...), 5, 5},
		{"the tightest go, and then enough of the others", append(alike(16, "ten", Service{MaxColocated: 10}), alike(4, "two", Service{MaxColocated: 2})...), 10, 10},
		{"one large one is enough", append(append(alike(10, "small", Service{Demand: cores(1)}), alike(4, "none", Service{})...), Service{Name: "large", Demand: cores(4)}), 1, 1},
		{"a large one and small ones", append(alike(14, "small", Service{Demand: cores(1)}), Service{Name: "large", Demand: cores(4)}), 5, 5},
		{"the large ones are dear", append(alike(18, "small", Service{Demand: cores(1)}), Service{Name: "large", Demand: cores(2), Stateful: true}), 10, 10},
		{"two resources, and one that takes both", append(append(alike(7, "cores", Service{Demand: cores(1)}), alike(7, "memory", Service{Demand: Vector{Memory: 1}})...),
			Service{Name: "both", Demand: Vector{Cores: 4, Memory: 4}}), 1, 1},
	} {
		for range 2 {
			s, d := crowd(t, ten, c.services)
			result := s.Replace(Options{})
			if len(result.Moves) != c.moves || result.Cost != c.cost || len(result.Refused) > 0 || len(result.Broken) > 0 {
				t.Errorf("%s: %d moves for %d, want %d for %d: %+v", c.name, len(result.Moves), result.Cost, c.moves, c.cost, d.at)
			}
			slices.Reverse(c.services)
		}
	}
}

// Of those that have to be apart, the cheaper ones go, and the fewest.
func TestReplaceMovesCheapRivals(t *testing.T) {
	star := func(centre Service, n int) []Service {
		points := alike(n, "point", Service{})
		centre.Name = "centre"
		for i := range points {
			centre.Apart = append(centre.Apart, points[i].Name)
		}
		return append(points, centre)
	}
	for _, c := range []struct {
		name     string
		services []Service
		moved    string
		cost     int64
	}{
		{"a state is dear", []Service{{Name: "a", Stateful: true, Apart: []string{"b"}}, {Name: "b"}}, "b", 1},
		{"a price is dear", []Service{{Name: "a", MoveCost: 2}, {Name: "b", MoveCost: 3, Apart: []string{"a"}}}, "a", 2},
		{"a pinned one stays", []Service{{Name: "a", Node: "server0/host", Apart: []string{"b"}}, {Name: "b", MoveCost: 1 << 40}}, "b", 1 << 40},
		{"few around", star(Service{}, 3), "centre", 1},
		{"many around", star(Service{}, 20), "centre", 1},
		{"many around a dear one", star(Service{MoveCost: 19}, 20), "centre", 19},
	} {
		for range 2 {
			s, _ := crowd(t, Vector{10, 10, 10, 10, 10}, c.services)
			result := s.Replace(Options{})
			if len(result.Moves) != 1 || result.Moves[0].Service != c.moved || result.Cost != c.cost || len(result.Broken) > 0 {
				t.Errorf("%s: %+v, want %s for %d", c.name, result, c.moved, c.cost)
			}
			slices.Reverse(c.services)
		}
	}
	s, d := crowd(t, Vector{10, 10, 10, 10, 10}, star(Service{MoveCost: 21}, 20))
	if result := s.Replace(Options{}); len(result.Moves) != 20 || d.at[20] != 0 {
		t.Errorf("around one that is too dear: %+v", result)
	}
}

// Replace says what made each microservice leave, why that one, and why it is where it is.
func TestReplaceExplains(t *testing.T) {
	s := rackOf(t)
	d := addApp(t, s, `
name: x
services:
- {name: big, demand: {millicores: 12000}, stateful: true}
- {name: one, demand: {millicores: 3000}}
- {name: two, demand: {millicores: 3000}}
- {name: held, demand: {millicores: 1000}, node: server0/host, apart: [rival]}
- {name: rival, max_colocated: 3}
- {name: nic, kinds: [nic]}
- {name: new}
`)
	for i := range 6 {
		s.Place(d, i, 1)
	}
	s.SetDown(2, true)
	var said []string
	result := s.Replace(Options{Explain: func(e Decision) {
		if e.App != "x" {
			t.Errorf("%+v", e)
		}
		said = append(said, e.String())
	}})
	const want = `one: server0/nic0 is the first that fits
	it left server0/host, since node "server0/host" lacks 3000 millicores; its move costs 1; were it to stay, moves would cost 1
	all 4 nodes: 1 refused by down, 1 refused by millicores, 2 fit
rival: server1/host is the first that fits
	it left server0/host, since app "x": microservice "rival" on node "server0/host": apart; its move costs 1; no other move would do
	all 4 nodes: 1 refused by down, 2 refused by apart, 1 fit
nic: server0/nic0 is the first that fits
	it left server0/host, since app "x": microservice "nic" on node "server0/host": kind; its move costs 1; no other move would do
	all 4 nodes: 1 refused by down, 2 refused by kind, 1 fit
new: server0/nic0 is the first that fits
	all 4 nodes: 1 refused by down, 3 fit`
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(result.Moves) != 4 || len(result.Broken) > 0 {
		t.Errorf("%+v", result)
	}
}

// What has to leave and fits nowhere says both.
func TestReplaceExplainsRefusals(t *testing.T) {
	s := rackOf(t)
	d := addApp(t, s, "name: x\nservices: [{name: a, demand: {millicores: 9000}}, {name: b, demand: {millicores: 10000}}, {name: c, demand: {millicores: 8000}, stateful: true}]")
	for i, id := range []NodeID{1, 1, 3} {
		s.Place(d, i, id)
	}
	s.SetDown(2, true)
	result := s.Replace(Options{Explain: func(Decision) {}})
	const want = `app "x": no node fits microservice "a": all 4 nodes: 1 refused by down, 3 refused by millicores; the nearest, server1/host, lacks 1000 millicores; it left server0/host, since node "server0/host" lacks 3000 millicores; its move costs 1; were it to stay, moves would cost 1`
	if len(result.Refused) != 1 || result.Refused[0].Error() != want {
		t.Errorf("got %v, want %s", result.Refused, want)
	}
}

// An explanation changes nothing, and what it says of prices holds: the set that it names is the one that left, and no other one is cheaper.
func TestReplaceExplainsWhatItDoes(t *testing.T) {
	r := seed.Rand(t)
	choices := 0
	for range 600 {
		topo := randomTopology(t, r, 6)
		apps := []*App{randomApp(t, r, "a", topo, fewTasks/2), randomApp(t, r, "b", topo, fewTasks/2)} // so that all sets are tried
		states := [2]*State{NewState(topo), NewState(topo)}
		for _, app := range apps {
			var all [2]*Deployment
			for k, s := range states {
				var err error
				if all[k], err = s.Add(app); err != nil {
					t.Fatal(err)
				}
			}
			for i := range app.Services {
				id := NodeID(r.IntN(topo.Len()))
				states[0].Place(all[0], i, id)
				states[1].Place(all[1], i, id)
			}
		}
		plain := states[0].Replace(Options{})
		said := make(map[string]*Eviction)
		explained := states[1].Replace(Options{Explain: func(e Decision) { said[e.App+"/"+e.Service] = e.Left }})
		if fmt.Sprint(plain.Moves) != fmt.Sprint(explained.Moves) || plain.Cost != explained.Cost || len(plain.Refused) != len(explained.Refused) {
			t.Fatalf("%+v, and explained %+v", plain, explained)
		}
		for _, m := range explained.Moves {
			e := said[m.App+"/"+m.Service]
			if e == nil || e.Node != topo.name(m.From) || e.Cost != m.Cost || len(e.Broken) == 0 || e.All < e.Cost {
				t.Fatalf("%+v: %+v", m, e)
			}
			if e.Choice {
				choices++
				if e.Instead < e.All {
					t.Fatalf("%s, which is more", e)
				}
			}
		}
	}
	if choices < 100 {
		t.Errorf("only %d had a choice", choices)
	}
}

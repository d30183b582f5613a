package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/test/seed"
)

// What a decision says of each level agrees with a look at every node of it.
func TestExplain(t *testing.T) {
	r := seed.Rand(t)
	decisions := 0
	for range 100 {
		topo := randomTopology(t, r, 8)
		s, n := NewState(topo), newNaive(topo, parentsOf(topo))
		for _, name := range []string{"a", "b", "c"} {
			d, err := s.Add(randomApp(t, r, name, topo, 8))
			if err != nil {
				t.Fatal(err)
			}
			a := &naiveApp{app: d.App, at: slices.Repeat([]int{-1}, len(d.at))}
			n.apps = append(n.apps, a)
			copyNodes := func() {
				for i, id := range d.Nodes() {
					a.at[i] = int(id)
				}
			}
			_ = s.HCM(d, Options{Overcommit: r.IntN(2) == 0, Explain: func(e Decision) {
				copyNodes()
				decisions++
				n.checkDecision(t, a, &e)
			}})
			copyNodes()
		}
	}
	if decisions < 300 {
		t.Errorf("only %d decisions", decisions)
	}
}

func (n *naive) checkDecision(t *testing.T, a *naiveApp, e *Decision) {
	t.Helper()
	i, _ := a.app.ID(e.Service)
	caller := slices.IndexFunc(n.nodes, func(node Node) bool { return node.Name == e.Caller })
	for k := range e.Trials {
		trial := &e.Trials[k]
		nodes, fit, short, lackLeast, nearest := 0, 0, 0, -1.0, ""
		for id := range n.nodes {
			if caller >= 0 && n.level(caller, id) != trial.Level {
				continue
			}
			nodes++
			left, allowed := n.left(a, i, id)
			lack := 0.0
			for r := range left {
				lack += float64(max(0, -left[r])) * float64(whole/n.most[r])
			}
			switch {
			case allowed && lack == 0:
				fit++
			case allowed:
				short++
			}
			if allowed && (lackLeast < 0 || lack < lackLeast) {
				lackLeast, nearest = lack, n.nodes[id].Name
			}
		}
		if fit > 0 {
			nearest = ""
		}
		shorts := 0
		for r := range resources {
			shorts += trial.Refused[Short(r)]
		}
		if trial.Nodes != nodes || trial.Fitting() != fit || shorts != short || trial.Nearest != nearest {
			t.Fatalf("%s, but it is %d nodes, %d fit, %d are short and the nearest is %q", trial, nodes, fit, short, nearest)
		}
	}
	last := &e.Trials[len(e.Trials)-1]
	if (last.Fitting() > 0) != (e.Short == Vector{}) {
		t.Fatalf("a node that lacks %s was taken: %s", e.Short, e)
	}
}

func TestExplainInWords(t *testing.T) {
	topo, err := FatTree{Servers: 2, NICs: 1, NIC: Vector{1000, 100, 0, 10, 10}, Host: Vector{4000, 400, 0, 10, 10}}.Topology()
	if err != nil {
		t.Fatal(err)
	}
	app, err := NewApp("app", []Service{{Name: "front", Demand: Vector{Cores: 800}, Kinds: []Kind{NIC}}, {Name: "back", Demand: Vector{Cores: 3000, Memory: 50}, Apart: []string{"front"}},
		{Name: "more", Demand: Vector{Cores: 4500}}}, []Edge{{"front", "back", 1}, {"back", "more", 1}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewState(topo)
	d, _ := s.Add(app)
	var said []string
	err = s.HCM(d, Options{Explain: func(e Decision) { said = append(said, e.String()) }})
	want := `front: server0/nic0 is the first that fits
	all 4 nodes: 2 refused by kind, 2 fit
back: server1/host is the best fit of level 4 (hosts in rack0) from server0/nic0
	level 1 (the same node), 1 node: 1 refused by apart
	level 2 (the same server, server0), 1 node: 1 refused by apart
	level 3 (NICs in rack0), 1 node: 1 refused by millicores; the nearest, server1/nic0, lacks 2000 millicores
	level 4 (hosts in rack0), 1 node: 1 fit`
	if got := strings.Join(said, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const refusal = `app "app": no node fits microservice "more": level 1 (the same node), 1 node: 1 refused by millicores; the nearest, server1/host, lacks 3500 millicores; level 2`
	if err == nil || !strings.HasPrefix(err.Error(), refusal) {
		t.Errorf("got %v, want %s...", err, refusal)
	}
	if d.Node(0) != Nowhere || len(s.Check()) != 0 || s.Free(0) != topo.Node(0).Capacity {
		t.Error("a refused app left something behind")
	}
}

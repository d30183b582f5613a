package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomTopology makes a tree of any shape: groups below any group, nodes below groups that have none yet or anywhere.
func randomTopology(t testing.TB, r *rand.Rand, most int) *Topology {
	t.Helper()
	groups := []Group{{Name: "g0"}}
	for i := range r.IntN(most) {
		groups = append(groups, Group{fmt.Sprint("g", i+1), groups[r.IntN(len(groups))].Name})
	}
	leaf := make(map[string]bool)
	for _, g := range groups {
		leaf[g.Name] = true
	}
	for _, g := range groups {
		delete(leaf, g.Parent)
	}
	var nodes []Node
	add := func(parent string) {
		n := Node{Name: fmt.Sprint("n", len(nodes)), Parent: parent, Kind: []Kind{NIC, Host}[r.IntN(2)]}
		for i := range n.Capacity {
			n.Capacity[i] = 1 + r.Int64N(12)
			if r.IntN(6) == 0 {
				n.Load[i] = r.Int64N(14)
			}
		}
		if r.IntN(2) == 0 {
			n.Labels = map[string]string{"zone": fmt.Sprint(r.IntN(2))}
		}
		nodes = append(nodes, n)
	}
	for _, g := range groups {
		if leaf[g.Name] {
			add(g.Name)
		}
	}
	for range r.IntN(2 * most) {
		add(groups[r.IntN(len(groups))].Name)
	}
	r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	topo, err := New(groups, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// randomApp makes an app of 1 to most microservices with all sorts of constraints.
func randomApp(t testing.TB, r *rand.Rand, name string, topo *Topology, most int) *App {
	t.Helper()
	services := make([]Service, 1+r.IntN(most))
	demand := func() (v Vector) {
		for i := range v {
			v[i] = r.Int64N(4)
		}
		return v
	}
	for i := range services {
		s := &services[i]
		s.Name, s.Demand, s.Stateful = fmt.Sprint("s", i), demand(), r.IntN(3) == 0
		if r.IntN(3) == 0 {
			other := demand()
			s.OnNIC = &other
		}
		if r.IntN(4) == 0 {
			s.Kinds = []Kind{[]Kind{NIC, Host}[r.IntN(2)]}
		}
		if r.IntN(6) == 0 {
			s.Labels = map[string]string{"zone": fmt.Sprint(r.IntN(2))}
		}
		if r.IntN(15) == 0 {
			s.Node = topo.Node(NodeID(r.IntN(topo.Len()))).Name
		}
		if r.IntN(6) == 0 {
			s.MaxColocated = 1 + r.IntN(3)
		}
		if other := r.IntN(len(services)); other != i && r.IntN(4) == 0 {
			s.Apart = []string{fmt.Sprint("s", other)}
		}
	}
	var edges []Edge
	for to := 1; to < len(services); to++ {
		for from := range to {
			if r.IntN(to) == 0 {
				edges = append(edges, Edge{fmt.Sprint("s", from), fmt.Sprint("s", to), r.Int64N(100)})
			}
		}
	}
	r.Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	a, err := NewApp(name, services, edges)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

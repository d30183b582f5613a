package placement

import (
	"slices"
	"strings"
	"testing"
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
	least, next := 0.0, ""
	for id := range NodeID(4) {
		if s.Place(d, 1, id); id == before[1] || len(s.Check()) > 0 {
			continue
		}
		if more := s.Cost(d, DefaultWeights) - cost; next == "" || more < least {
			least, next = more, s.topo.name(id)
		}
	}
	if c.Next != next || c.More != least || c.More < 0 || c.Fitting() != 3 {
		t.Errorf("%+v, want %s for %v", c, next, least)
	}
	if got := c.String(); !strings.HasPrefix(got, "all 4 nodes: 1 refused by millicores, 3 fit; the next best, "+next+", costs 0.") {
		t.Error(got)
	}
	alone := addApp(t, s, "name: y\nservices: [{name: a, node: server0/host}]")
	if err := s.HCM(alone, Options{}); err != nil {
		t.Fatal(err)
	}
	one := s.Compare(alone, 0, DefaultWeights)
	if got, want := one.String(), "all 4 nodes: 3 refused by pinned elsewhere, 1 fit; no other one fits as the others are placed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

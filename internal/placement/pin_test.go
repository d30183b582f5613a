package placement

import (
	"errors"
	"strings"
	"testing"
)

// rackOf is two servers, each a host of 16 cores and a NIC of 4.
func rackOf(t *testing.T) *State {
	t.Helper()
	topo, err := FatTree{Servers: 2, NICs: 1, NIC: Vector{4000, 4096, 0, 25000, 100}, Host: Vector{16000, 65536, 0, 25000, 100}}.Topology()
	if err != nil {
		t.Fatal(err)
	}
	return NewState(topo)
}

func addApp(t *testing.T, s *State, text string) *Deployment {
	t.Helper()
	app, err := ReadApp([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Add(app)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const cardPinned = `
name: shop
services:
- {name: web, demand: {millicores: 9000}}
- {name: card, demand: {millicores: 12000}, node: server0/host}
`

// What is pinned has no choice, so it goes first.
func TestPinnedGoFirst(t *testing.T) {
	s := rackOf(t)
	d := addApp(t, s, cardPinned)
	var said []string
	if err := s.HCM(d, Options{Explain: func(e Decision) { said = append(said, e.String()) }}); err != nil {
		t.Fatal(err)
	}
	if a, b := s.topo.name(d.Node(0)), s.topo.name(d.Node(1)); a != "server1/host" || b != "server0/host" {
		t.Errorf("web is on %s, card on %s", a, b)
	}
	if got := strings.Join(said, "\n"); !strings.HasPrefix(got, "card: server0/host is the node that it is pinned to\n") {
		t.Error(got)
	}
}

// Pin keeps an app from taking the room of the next one's pinned microservices, and takes all or none.
func TestPin(t *testing.T) {
	s := rackOf(t)
	web := addApp(t, s, "name: web\nservices: [{name: web, demand: {millicores: 9000}}]")
	shop := addApp(t, s, cardPinned)
	if err := s.Pin(shop, Options{}); err != nil {
		t.Fatal(err)
	}
	if shop.Node(0) != Nowhere || s.topo.name(shop.Node(1)) != "server0/host" {
		t.Errorf("it is on %v", shop.Nodes())
	}
	if err := s.HCM(web, Options{}); err != nil || s.topo.name(web.Node(0)) != "server1/host" {
		t.Errorf("%v, web is on %v", err, web.Nodes())
	}
	two := addApp(t, s, "name: two\nservices: [{name: a, demand: {millicores: 1}, node: server1/host}, {name: b, demand: {millicores: 7001}, node: server1/host}]")
	var refused *RefusedError
	if err := s.Pin(two, Options{}); !errors.As(err, &refused) || refused.Decision.Service != "b" || two.Node(0) != Nowhere {
		t.Errorf("%v, %v", err, two.Nodes())
	}
}

// Traffic weighs distance, and reserves nothing; a demand of bandwidth does.
func TestTrafficReservesNothing(t *testing.T) {
	const text = `
name: x
services: [{name: a, node: server0/nic0, demand: {bandwidth: B}}, {name: b, node: server1/nic0}]
edges: [{from: a, to: b, traffic: 90000}]`
	s := rackOf(t)
	if err := s.HCM(addApp(t, s, strings.Replace(text, "B", "25000", 1)), Options{}); err != nil || len(s.Check()) > 0 {
		t.Errorf("%v, %v", err, s.Check())
	}
	s = rackOf(t)
	if err := s.HCM(addApp(t, s, strings.Replace(text, "B", "90000", 1)), Options{}); err == nil || !strings.Contains(err.Error(), "lacks 65000 Mb/s bandwidth") {
		t.Errorf("got %v", err)
	}
}

// Annealing and the ILP name what is short.
func TestShortage(t *testing.T) {
	for services, want := range map[string]string{
		"{name: big, demand: {millicores: 99000}}": `microservice "big" fits on none of the 4 nodes that it may be on: the nearest, server0/host, lacks 83000 millicores`,
		"{name: a, demand: {millicores: 9000}}, {name: b, demand: {millicores: 16000}}, {name: c, demand: {millicores: 16000}}":                             `its 3 microservices together need 1000 millicores more than is free on the nodes that they may be on`,
		"{name: a, kinds: [nic], demand: {memory: 4000}}, {name: b, kinds: [nic], demand: {memory: 4000}}, {name: c, kinds: [nic], demand: {memory: 1000}}": `its 3 microservices that have to be on a nic together need 808 MiB memory more`,
		"{name: a, node: server0/nic0, demand: {requests: 60}}, {name: b, node: server0/nic0, demand: {requests: 60}}":                                      `its 2 microservices pinned to server0/nic0 together need 20 requests more`,
	} {
		s := rackOf(t)
		d := addApp(t, s, "{name: x, services: ["+services+"]}")
		for by, place := range map[string]func() error{
			"annealing": func() error { return s.Anneal(d, AnnealOptions{}) },
			"the ILP":   func() error { return s.ILP(t.Context(), d, ILPOptions{}) },
		} {
			if err := place(); !errors.Is(err, ErrInfeasible) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", by, err, want)
			}
		}
	}
}

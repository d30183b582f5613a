package placement

import (
	"context"
	"fmt"
	"testing"
)

// That like nodes and servers are not told apart rules out no placement but by name: as many microservices as NICs still get one each.
func TestOrderKeepsTheBest(t *testing.T) {
	for _, servers := range []int{1, 2} {
		topo := uniformTopology(t, servers, 2)
		services := make([]Service, 2*servers)
		for i := range services {
			services[i] = Service{Name: fmt.Sprint("s", i), Demand: Vector{Cores: 1}, Kinds: []Kind{NIC}}
		}
		s, d := added(t, topo, services, nil)
		if err := s.ILP(context.Background(), d, ILPOptions{}); err != nil {
			t.Fatal(err)
		}
		if cost := s.Cost(d, DefaultWeights); cost > 1e-9 {
			t.Errorf("%d servers: it costs %g, though each could have a NIC of its own: %v", servers, cost, d.Nodes())
		}
	}
}

package cluster

import "github.com/lambdanic/lambdanic/internal/placement"

// A message through a network takes a core's time at both of its ends; one to the same node (queues in shared memory, section 4) or over PCIe (DMA
// engines, section 3.1) takes none. What was measured for Table 1 has both: each request came through a network, and so did its reply. The
// paper has no figures for ends alone. It is assumed that they are half of what the quickest service takes, which does little else: KVS on hosts
// and NATv4 on NICs.
const (
	hostEnd = 0.25e-6 // s
	nicEnd  = 1.46e-6
	// quickest is the share of a service's time that an end has where a service is quicker than those.
	quickest = 0.25
	measured = 2 // ends
)

// seconds is how long a core of the kind measured takes for a request with so many ends of messages through a network.
func (s *Service) seconds(k placement.Kind, ends float64) float64 {
	end := hostEnd
	if k == placement.NIC {
		end = nicEnd
	}
	all := s.on(k).seconds()
	return all + (ends-measured)*min(end, quickest*all)
}

// joules is the active energy of that request.
func (s *Service) joules(k placement.Kind, ends float64) float64 {
	m := s.on(k)
	return m.joules() * s.seconds(k, ends) / m.seconds()
}

// replies is how many of an instance's requests it answers itself, as it calls no other.
func (in *instance) replies() float64 {
	share := 1.0
	for _, c := range in.calls {
		share *= 1 - c.share
	}
	return share
}

// mostEnds are those of an instance, for each request, if all of its messages go through a network.
func (in *instance) mostEnds() float64 {
	ends := 1 + in.replies()
	for _, c := range in.calls {
		ends += c.share
	}
	return ends
}

// seconds is how long a core of the kind measured takes for a request at an instance, where it was placed.
func (p *Placed) seconds(i int) float64 {
	return p.instances[i].part.Service.seconds(p.node(i).kind, p.ends[i])
}

// joules is the active energy of that request.
func (p *Placed) joules(i int) float64 {
	return p.instances[i].part.Service.joules(p.node(i).kind, p.ends[i])
}

// node is that of an instance.
func (p *Placed) node(i int) *node { return &p.Cluster.nodes[p.Deployment.Node(i)] }

// network says whether a message between two nodes goes through a network; Nowhere is a client's.
func (cl *Cluster) network(a, b placement.NodeID) bool {
	if a == placement.Nowhere || b == placement.Nowhere {
		return true
	}
	pcie := cl.nodes[a].server == cl.nodes[b].server && cl.nodes[a].kind != cl.nodes[b].kind
	return a != b && !pcie
}

// countEnds counts the ends of messages through a network that each instance has, for each of its requests: those of calls that it makes and
// gets, of what comes from clients, and of replies to them.
func (p *Placed) countEnds() []float64 {
	ends := make([]float64, len(p.instances)) // of one request of a client
	count := func(from placement.NodeID, visits float64, calls []call) (sent float64) {
		for _, c := range calls {
			for _, to := range c.to {
				if p.Cluster.network(from, p.Deployment.Node(int(to))) {
					n := visits * c.share / float64(len(c.to))
					sent, ends[to] = sent+n, ends[to]+n
				}
			}
		}
		return sent
	}
	count(placement.Nowhere, 1, p.first)
	for i := range p.instances {
		in := &p.instances[i]
		ends[i] += in.visits*in.replies() + count(p.Deployment.Node(i), in.visits, in.calls)
	}
	for i := range ends {
		ends[i] /= p.instances[i].visits
	}
	return ends
}

package placement

import "math"

// Weights are those of the parts of a cost. What matters most to annealing and the ILP of E3 is that microservices do not interfere
// (section 5.4); HCM, which weighs communication most, has no use for weights.
type Weights struct {
	// Interference weighs the sum, over nodes, of how much microservices that share a node's cores slow each other, per microservice: see curve.
	Interference float64
	// Communication weighs the mean number of links that traffic crosses, as a share of the most there can be: 0..1.
	Communication float64
	// Move weighs the move costs of microservices that were deployed and are elsewhere now, as a share of the app's: 0..1.
	Move float64
}

// DefaultWeights weigh interference most. The paper gives no numbers.
var DefaultWeights = Weights{Interference: 10, Communication: 1, Move: 0.5}

func (w Weights) valid() bool { return w.Interference >= 0 && w.Communication >= 0 && w.Move >= 0 }

// curveSteps is how many straight pieces the curve has up to a full node.
const curveSteps = 8

// curve is the square of how much of a node's cores is in use, as the lines between its points at 0, 1/8, ... 1 and on. It is convex, so that
// a linear program can have it, and 0 at 0. Microservices that use shares u and v of a node interfere by curve(u+v) - curve(u) - curve(v),
// which is about 2uv: nothing for one alone, and more than the sum for many.
func curve(u float64) float64 {
	k := min(max(0, int(u*curveSteps)), curveSteps-1)
	return piece(k, u)
}

// piece is the line through the curve's points k and k+1. The curve is the highest of the pieces.
func piece(k int, u float64) float64 {
	return (float64(2*k+1)*u - float64(k*(k+1))/curveSteps) / curveSteps
}

// costs computes what placements of one app's microservices cost, all else on the cluster being as it is.
type costs struct {
	s       *State
	d       *Deployment
	from    []NodeID // where they were
	perNode float64  // factors
	perHop  float64
	perMove float64
}

func (s *State) costs(d *Deployment, w Weights) *costs {
	c := &costs{s: s, d: d, from: d.Nodes(), perNode: w.Interference / float64(len(d.at))}
	if d.App.traffic > 0 {
		c.perHop = w.Communication / float64(d.App.traffic) / float64(s.topo.width)
	}
	var moves int64
	for i := range d.App.Services {
		moves += d.App.Services[i].moveCost()
	}
	c.perMove = w.Move / float64(moves)
	return c
}

// cores is the share of a node's cores that is in use.
func (c *costs) cores(id NodeID, free int64) float64 {
	all := c.s.topo.nodes[id].Capacity[Cores]
	return float64(all-free) / float64(all)
}

// share is how much of a node's cores a microservice takes.
func (c *costs) share(i int32, id NodeID) float64 {
	n := &c.s.topo.nodes[id]
	return float64(c.d.App.Services[i].demand(n.Kind.ordinal())[Cores]) / float64(n.Capacity[Cores])
}

// alone is what the curve says of a microservice by itself.
func (c *costs) alone(i int32, id NodeID) float64 { return curve(c.share(i, id)) }

// move is what it costs that a microservice is on a node, where it may not have been.
func (c *costs) move(i int32, id NodeID) float64 {
	if c.from[i] == Nowhere || c.from[i] == id {
		return 0
	}
	return c.perMove * float64(c.d.App.Services[i].moveCost())
}

// total is the cost of a placement of all microservices. O(nodes in use + edges depth).
func (c *costs) total(at []NodeID) (sum float64) {
	used := make(map[NodeID]int64)
	var order []NodeID // so that the sum does not depend on the map's
	for i, id := range at {
		if id == Nowhere {
			continue
		}
		if _, ok := used[id]; !ok {
			order = append(order, id)
		}
		used[id] += c.d.App.Services[i].demand(c.s.topo.nodes[id].Kind.ordinal())[Cores]
		sum += c.move(int32(i), id) - c.perNode*c.alone(int32(i), id)
	}
	for _, id := range order {
		free := c.without(id)[Cores]
		sum += c.perNode * (curve(c.cores(id, free-used[id])) - curve(c.cores(id, free)))
	}
	for i := range c.d.App.callees {
		for _, p := range c.d.App.peers[i] {
			if int32(i) < p.service && at[i] != Nowhere && at[p.service] != Nowhere {
				sum += c.perHop * float64(p.traffic) * float64(c.s.topo.Hops(at[i], at[p.service]))
			}
		}
	}
	return sum
}

// without is what a node has left when it runs nothing of the app.
func (c *costs) without(id NodeID) Vector {
	n, kind := &c.s.nodes[id], c.s.topo.nodes[id].Kind.ordinal()
	free := n.free
	for _, t := range n.tasks {
		if t.d == c.d {
			free.add(t.service().demand(kind))
		}
	}
	return free
}

// others is how many microservices of other apps a node runs, and how many in all it may run because of them.
func (c *costs) others(id NodeID) (n, most int) {
	most = math.MaxInt
	for _, t := range c.s.nodes[id].tasks {
		if t.d != c.d {
			n++
			most = min(most, limit(t.service()))
		}
	}
	return n, most
}

// Cost is what the placement of an app costs: interference of its microservices with each other and with what else is on their nodes, and
// communication. What is nowhere costs nothing, and nothing has moved. O(microservices + edges depth).
func (s *State) Cost(d *Deployment, w Weights) float64 { return s.costs(d, w).total(d.at) }

package placement

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// AnnealOptions bound annealing by moves, so that a seed has one result on any machine.
type AnnealOptions struct {
	Seed     uint64
	MovesPer int            // moves to try for each microservice; 0 is DefaultMovesPer
	Weights  Weights        // zero is DefaultWeights
	Explain  func(Decision) // if not nil, called for each microservice, once all are placed; it takes O(nodes) for each
}

// DefaultMovesPer takes a fifth of the time of Table 6, or less.
const DefaultMovesPer = 1000

// ErrNotFound says that annealing found no placement that meets all constraints. There may be one.
var ErrNotFound = errors.New("annealing found no placement that meets all constraints; try more moves, or the ILP, which can tell whether there is one")

// Anneal places an app by simulated annealing (Kirkpatrick, Gelatt, Vecchi, Science 1983), as Service Fabric does (section 3.3; Kakivaya et al.,
// EuroSys 2018). Constraints come in tiers. A move never goes to a node that is of another kind than allowed, lacks a label, is not the
// one pinned to, or is down. A first pass anneals what is broken of the other hard constraints, until nothing is. The second one anneals
// the cost, and breaks nothing. Each begins at a temperature that it finds by probing random moves, and cools geometrically.
//
// Where microservices are deployed already, it begins there, and moves have their cost. It changes nothing if it fails: with a *RefusedError
// where a microservice has no node that it may be on at all, with ErrInfeasible where it is plain which resource is short, or ErrNotFound
// and the Violations of the nearest placement.
//
// It tries MovesPer moves for each microservice in each pass; each takes O(edges and rivals of a microservice).
func (s *State) Anneal(d *Deployment, o AnnealOptions) error {
	if o.Weights == (Weights{}) {
		o.Weights = DefaultWeights
	}
	if o.MovesPer == 0 {
		o.MovesPer = DefaultMovesPer
	}
	if o.MovesPer < 0 || !o.Weights.valid() {
		return fmt.Errorf("anneal app %q: moves and weights have to be at least 0", d.App.Name)
	}
	a, err := newAnnealer(s, d, o)
	if err != nil {
		return err
	}
	at, err := a.run(o.MovesPer * len(d.at))
	if err != nil {
		if why := s.Shortage(d); why != "" {
			err = fmt.Errorf("%w: %s", ErrInfeasible, why)
		} else {
			err = fmt.Errorf("%w; the nearest that it found: %w", err, s.breaks(d, a.nearest))
		}
		return fmt.Errorf("app %q: %w", d.App.Name, err)
	}
	for i := range d.at {
		s.lift(d, int32(i))
	}
	for i, id := range at {
		s.put(d, int32(i), id)
	}
	a.explain(o.Explain)
	return nil
}

// Small apps, which are annealed within milliseconds, are annealed again from other beginnings: with few nodes, a placement may be surrounded
// by ones that break constraints.
const (
	fewMoves = 20000
	restarts = 16
)

func (a *annealer) run(moves int) (at []NodeID, err error) {
	least, nearest := math.Inf(1), math.Inf(1)
	for n := range restarts {
		if n > 0 && n*moves > fewMoves {
			break
		}
		a.begin(n)
		for pass := 0; a.broken > epsilon && pass < 3; pass++ {
			a.cool(moves, (*annealer).repairs)
			a.restore()
		}
		if a.broken > epsilon {
			if a.broken < nearest {
				a.nearest, nearest = slices.Clone(a.at), a.broken
			}
			continue
		}
		a.cool(moves, (*annealer).improves)
		if a.bestValue < least {
			at, least = a.best, a.bestValue
		}
	}
	if at == nil {
		return nil, ErrNotFound
	}
	return at, nil
}

const (
	leastBroken = 1e-3 // what any broken constraint counts
	epsilon     = 1e-7 // more than sums are off by
)

// annealer is a placement that changes.
type annealer struct {
	*costs
	r          *rand.Rand
	candidates [][]NodeID // of each microservice; those of the same constraints share a slice
	at         []NodeID
	nodes      []annealed
	tight      bool // a microservice limits how many its node runs
	broken     float64
	cost       float64 // but for a constant
	best       []NodeID
	bestValue  float64
	nearest    []NodeID // the placement that broke the least, if none broke nothing
}

// annealed is a node as the placement has it.
type annealed struct {
	free  Vector
	tasks []int32 // of the app
	other int     // microservices of other apps
	limit int     // of those
}

func newAnnealer(s *State, d *Deployment, o AnnealOptions) (*annealer, error) {
	a := &annealer{costs: s.costs(d, o.Weights), r: rand.New(rand.NewPCG(o.Seed, 0)), at: slices.Repeat([]NodeID{Nowhere}, len(d.at))}
	var err error
	if a.candidates, err = s.candidates(d); err != nil {
		return nil, err
	}
	for i := range d.App.Services {
		a.tight = a.tight || d.App.Services[i].MaxColocated > 0
	}
	a.nodes = make([]annealed, len(s.nodes))
	for id := range a.nodes {
		n := &a.nodes[id]
		n.free = a.without(NodeID(id))
		n.other, n.limit = a.others(NodeID(id))
		a.tight = a.tight || n.limit < math.MaxInt
	}
	return a, nil
}

// candidates lists for each microservice the nodes that are what they have to be. It fails with a *RefusedError for one without any.
func (s *State) candidates(d *Deployment) ([][]NodeID, error) {
	all := make([][]NodeID, len(d.at))
	known := make(map[string][]NodeID)
	for i := range d.App.Services {
		v := &d.App.Services[i]
		signature := fmt.Sprint(v.Node, "\x00", v.allows(NIC), v.allows(Host), v.Labels)
		nodes, ok := known[signature]
		if !ok {
			q := s.ask(d, int32(i))
			for id := range s.nodes {
				if id := NodeID(id); !s.nodes[id].down && q.identity(id) == Met {
					nodes = append(nodes, id)
				}
			}
			if nodes == nil {
				return nil, &RefusedError{d.App.Name, q.explain(d.at, Nowhere, Nowhere, 0)}
			}
			known[signature] = nodes
		}
		all[i] = nodes
	}
	return all, nil
}

// begin puts each microservice where it is deployed, if it may be there and this is not a restart, else on a random node that has room, or
// on any.
func (a *annealer) begin(restart int) {
	for i := range a.at {
		if a.at[i] != Nowhere {
			a.lift(int32(i))
		}
	}
	for i := range a.at {
		id := a.from[i]
		if restart > 0 || id == Nowhere || !a.may(int32(i), id) {
			id = a.draw(int32(i))
			for range 16 {
				if a.nodes[id].free.covers(a.need(int32(i), id)) {
					break
				}
				id = a.draw(int32(i))
			}
		}
		a.put(int32(i), id)
	}
	a.measure()
}

// restore makes the placement the best one seen.
func (a *annealer) restore() {
	for i, id := range a.best {
		if a.at[i] != id {
			a.lift(int32(i))
			a.put(int32(i), id)
		}
	}
	a.measure()
}

func (a *annealer) measure() {
	a.broken, a.cost = 0, 0
	for id := range a.nodes {
		a.broken += a.overfull(NodeID(id))
	}
	for i, id := range a.at {
		a.broken += a.tooClose(int32(i), id) / 2
	}
	a.cost = a.total(a.at)
}

func (a *annealer) need(i int32, id NodeID) *Vector {
	return a.d.App.Services[i].demand(a.s.topo.nodes[id].Kind.ordinal())
}

func (a *annealer) put(i int32, id NodeID) {
	n := &a.nodes[id]
	n.free.sub(a.need(i, id))
	n.tasks = append(n.tasks, i)
	a.at[i] = id
}

func (a *annealer) lift(i int32) {
	id := a.at[i]
	n := &a.nodes[id]
	n.free.add(a.need(i, id))
	at, last := slices.Index(n.tasks, i), len(n.tasks)-1
	n.tasks[at] = n.tasks[last]
	n.tasks = n.tasks[:last]
	a.at[i] = Nowhere
}

// may says whether a node is what it has to be for a microservice.
func (a *annealer) may(i int32, id NodeID) bool {
	return !a.s.nodes[id].down && a.d.App.Services[i].identity(&a.s.topo.nodes[id]) == Met
}

// overfull is by how much a node breaks constraints: in shares of the largest node's resources, and in microservices too many. A node
// overloaded by others alone breaks none.
func (a *annealer) overfull(id NodeID) (sum float64) {
	n := &a.nodes[id]
	if len(n.tasks) == 0 {
		return 0
	}
	for _, left := range n.free {
		if left < 0 {
			sum += leastBroken
		}
	}
	sum += a.s.topo.share.missing(&n.free, &Vector{}) / whole
	if a.tight {
		least := n.limit
		for _, i := range n.tasks {
			least = min(least, limit(&a.d.App.Services[i]))
		}
		sum += float64(max(0, n.other+len(n.tasks)-least))
	}
	return sum
}

// tooClose counts the microservices on a node's server that have to be apart from one.
func (a *annealer) tooClose(i int32, id NodeID) (n float64) {
	for _, rival := range a.d.App.rivals[i] {
		if at := a.at[rival]; at != Nowhere && a.s.topo.above[at] == a.s.topo.above[id] {
			n++
		}
	}
	return n
}

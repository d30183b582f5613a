package placement

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// ILPOptions are for ILP.
type ILPOptions struct {
	Weights Weights        // zero is DefaultWeights
	Timeout time.Duration  // 0 is DefaultTimeout
	Solver  string         // highs or cbc; "" is the first of them that is installed
	Explain func(Decision) // if not nil, called for each microservice, once all are placed
}

// DefaultTimeout is how long a solver may take.
const DefaultTimeout = 10 * time.Second

// What can become of an integer linear program that is not solved.
var (
	ErrNoSolver   = errors.New("no solver for integer linear programs is installed: install the Debian package highs or coinor-cbc")
	ErrTimeout    = errors.New("the solver ran out of time: allow it more, or take annealing or HCM, which scale")
	ErrInfeasible = errors.New("no placement meets all constraints")
	ErrAnswer     = errors.New("the solver's answer is wrong")
)

// ILP places an app at the least cost there is, by a solver for integer linear programs, which runs as a process of its own. The cost is that of
// Anneal. What is deployed already can move, at its cost.
//
// The solver's answer is checked against the constraints and the cost before anything is changed. Errors wrap ErrNoSolver, ErrTimeout,
// ErrInfeasible or ErrAnswer; a microservice with no node that it may be on at all is a *RefusedError.
//
// CBC 2.10 answers within a second for 10 microservices on the 5 nodes of a server with 4 NICs, or 5 microservices on the 20 nodes of 4 such
// servers (BenchmarkILP). Beyond that its time grows fast: it takes seconds for 8 microservices on 10 nodes.
func (s *State) ILP(ctx context.Context, d *Deployment, o ILPOptions) error {
	if o.Weights == (Weights{}) {
		o.Weights = DefaultWeights
	}
	if !o.Weights.valid() {
		return fmt.Errorf("ILP of app %q: weights have to be at least 0", d.App.Name)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	c := s.costs(d, o.Weights)
	at, err := s.solve(ctx, d, o)
	if err != nil {
		return fmt.Errorf("ILP of app %q: %w", d.App.Name, err)
	}
	if broken := s.breaks(d, at); broken != nil {
		return fmt.Errorf("ILP of app %q: %w: %w", d.App.Name, ErrAnswer, broken)
	}
	for i := range at {
		s.Place(d, i, at[i])
	}
	c.explain(o.Explain)
	return nil
}

func (s *State) solve(ctx context.Context, d *Deployment, o ILPOptions) ([]NodeID, error) {
	solver, err := findSolver(o.Solver)
	if err != nil {
		return nil, err
	}
	p, err := s.program(d, o.Weights)
	if err != nil {
		return nil, s.because(d, err)
	}
	a, err := solver.run(ctx, &p.model, o.Timeout)
	if err != nil {
		return nil, s.because(d, err)
	}
	at, err := p.placement(a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", solver.name, ErrAnswer, err)
	}
	if cost, said := p.total(at)+p.constant, a.objective/p.scale; !(math.Abs(cost-said) <= 1e-4*max(1e-3, math.Abs(cost))) {
		return nil, fmt.Errorf("%s: %w: it says that the cost is %g, which is %g", solver.name, ErrAnswer, said, cost)
	}
	return at, nil
}

// program is the model of an app's placement.
type program struct {
	model
	*costs
	candidates [][]NodeID
	x          []map[NodeID]int // columns: 1 if a microservice is on a node
	nodes      []NodeID         // that are a candidate
	free       map[NodeID]Vector
	constant   float64 // what the model's objective is more than the cost
}

func (s *State) program(d *Deployment, w Weights) (*program, error) {
	p := &program{costs: s.costs(d, w), free: make(map[NodeID]Vector)}
	var err error
	if p.candidates, err = s.candidates(d); err != nil {
		return nil, err
	}
	if err := p.place(); err != nil {
		return nil, err
	}
	p.fill()
	p.colocate()
	p.separate()
	p.interfere()
	p.communicate()
	p.order()
	return p, nil
}

// place makes a column for each microservice and node, and has each microservice on one node.
func (p *program) place() error {
	seen := make(map[NodeID]bool)
	for i, nodes := range p.candidates {
		p.x = append(p.x, make(map[NodeID]int))
		one := p.row(1, true)
		for _, id := range nodes {
			if p.overloaded(id) {
				continue
			}
			p.x[i][id] = p.column(p.move(int32(i), id)-p.perNode*p.alone(int32(i), id), true)
			p.add(one, p.x[i][id], 1)
			if !seen[id] {
				seen[id] = true
				p.nodes = append(p.nodes, id)
			}
		}
		if len(p.x[i]) == 0 {
			return fmt.Errorf("%w: others alone overload every node that microservice %q may be on", ErrInfeasible, p.d.App.Services[i].Name)
		}
	}
	slices.Sort(p.nodes)
	return nil
}

// overloaded says whether others alone overload a node. It finds what the node has free without the app.
func (p *program) overloaded(id NodeID) bool {
	free, ok := p.free[id]
	if !ok {
		free = p.without(id)
		p.free[id] = free
	}
	return slices.Min(free[:]) < 0
}

// fill keeps nodes within their capacities.
func (p *program) fill() {
	for _, id := range p.nodes {
		kind := p.s.topo.nodes[id].Kind.ordinal()
		for r, free := range p.free[id] {
			row := p.row(float64(free), false)
			for i := range p.x {
				if c, ok := p.x[i][id]; ok {
					p.add(row, c, float64(p.d.App.Services[i].demand(kind)[r]))
				}
			}
		}
	}
}

// colocate limits how many microservices a node runs, where one on it says so: those on it are at most the limit if it is there, and
// otherwise at most all.
func (p *program) colocate() {
	for _, id := range p.nodes {
		others, least := p.others(id)
		if least < math.MaxInt {
			p.count(p.row(float64(least-others), false), id)
		}
		for i := range p.x {
			if most := limit(&p.d.App.Services[i]); most < math.MaxInt {
				if c, ok := p.x[i][id]; ok {
					all := max(0, len(p.x)+others-most)
					row := p.row(float64(most-others+all), false)
					p.count(row, id)
					p.add(row, c, float64(all))
				}
			}
		}
	}
}

func (p *program) count(row int, id NodeID) {
	for i := range p.x {
		if c, ok := p.x[i][id]; ok {
			p.add(row, c, 1)
		}
	}
}

// separate keeps those apart on different servers.
func (p *program) separate() {
	for i, rivals := range p.d.App.rivals {
		for _, j := range rivals {
			if int(j) < i {
				continue
			}
			rows := make(map[int32]int)
			for _, id := range p.nodes {
				server := p.s.topo.above[id]
				row, ok := rows[server]
				if !ok {
					row = p.row(1, false)
					rows[server] = row
				}
				for _, k := range [2]int{i, int(j)} {
					if c, ok := p.x[k][id]; ok {
						p.add(row, c, 1)
					}
				}
			}
		}
	}
}

// interfere has a column for each node that is at least each piece of the curve: the cost pulls it down to the highest. As the curve is convex,
// it is also at least what each microservice would add alone; that says nothing new of whole numbers, but much of the fractions between
// which solvers search.
func (p *program) interfere() {
	if p.perNode == 0 {
		return
	}
	for _, id := range p.nodes {
		base := p.cores(id, p.free[id][Cores])
		p.constant += p.perNode * curve(base)
		height := p.column(p.perNode, false)
		alone := p.row(-curve(base), false)
		p.add(alone, height, -1)
		for i := range p.x {
			if c, ok := p.x[i][id]; ok {
				p.add(alone, c, curve(base+p.share(int32(i), id))-curve(base))
			}
		}
		for k := range curveSteps {
			row := p.row(-piece(k, base), false)
			for i := range p.x {
				if c, ok := p.x[i][id]; ok {
					p.add(row, c, float64(2*k+1)/curveSteps*p.share(int32(i), id))
				}
			}
			p.add(row, height, -1)
		}
	}
}

// communicate counts the links that each edge crosses: those above its callee up to where the tree joins, and those above its caller. With
// up(a) the links above a up to the root, that is up(caller) - up(callee) + 2 (links above the callee but not above the caller).
func (p *program) communicate() {
	if p.perHop == 0 {
		return
	}
	for i := range p.d.App.Edges {
		e := &p.d.App.Edges[i]
		if e.Traffic == 0 {
			continue
		}
		from, to := p.d.App.ids[e.From], p.d.App.ids[e.To]
		perHop := p.perHop * float64(e.Traffic)
		links := make(map[int64]int) // rows, by node or group
		for _, id := range p.nodes {
			up := 1
			p.link(links, int64(id), from, to, id, perHop)
			for g := p.s.topo.above[id]; p.s.topo.groups[g].above >= 0; g = p.s.topo.groups[g].above {
				p.link(links, -1-int64(g), from, to, id, perHop)
				up++
			}
			if c, ok := p.x[from][id]; ok {
				p.columns[c].cost += perHop * float64(up)
			}
			if c, ok := p.x[to][id]; ok {
				p.columns[c].cost -= perHop * float64(up)
			}
		}
	}
}

// link has a node in the row of a link above it: that the callee is below the link, less that the caller is, is at most a column that costs.
func (p *program) link(links map[int64]int, link int64, from, to int32, id NodeID, perHop float64) {
	row, ok := links[link]
	if !ok {
		row = p.row(0, false)
		links[link] = row
		p.add(row, p.column(2*perHop, false), -1)
	}
	if c, ok := p.x[to][id]; ok {
		p.add(row, c, 1)
	}
	if c, ok := p.x[from][id]; ok {
		p.add(row, c, -1)
	}
}

// placement reads where an answer has the microservices.
func (p *program) placement(a *answer) ([]NodeID, error) {
	at := make([]NodeID, len(p.x))
	for i := range at {
		at[i] = Nowhere
		for id, c := range p.x[i] {
			switch value := a.values[c]; {
			case math.Abs(value) < 1e-5:
			case math.Abs(value-1) < 1e-5 && at[i] == Nowhere:
				at[i] = id
			default:
				return nil, fmt.Errorf("microservice %q is to be %g times on node %q", p.d.App.Services[i].Name, value, p.s.topo.name(id))
			}
		}
		if at[i] == Nowhere {
			return nil, fmt.Errorf("microservice %q has no node", p.d.App.Services[i].Name)
		}
	}
	return at, nil
}

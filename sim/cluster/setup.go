package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lambdanic/lambdanic/internal/placement"
)

// Setup is an application on a cluster.
type Setup struct {
	Application *Application
	Cluster     *Cluster
	// Backups is how many replicas each microservice has that stand by, each on a server of its own. Clusters of fewer servers have fewer.
	Backups int
}

// Policy says how microservices are placed.
type Policy string

// The policies (section 5.4). Spread is annealing that knows no topology, as the paper has it of Service Fabric (section 3.3): its cost is
// interference alone. Annealing and ILP weigh interference ten times as much as communication (placement.DefaultWeights).
const (
	HCM       Policy = "hcm"
	Spread    Policy = "spread"
	Annealing Policy = "anneal"
	ILP       Policy = "ilp"
)

// Policies are all of them.
var Policies = []Policy{HCM, Spread, Annealing, ILP}

// ParsePolicy reads a policy's name.
func ParsePolicy(text string) (Policy, error) {
	for _, p := range Policies {
		if strings.EqualFold(string(p), text) {
			return p, nil
		}
	}
	return "", fmt.Errorf("policy %q: it has to be %s, %s, %s or %s", text, HCM, Spread, Annealing, ILP)
}

// Weights are those of the cost that a policy minimises, and of HCM, which minimises none, the others'.
func (p Policy) Weights() placement.Weights {
	if p == Spread {
		return placement.Weights{Interference: 1}
	}
	return placement.DefaultWeights
}

// How says how to place.
type How struct {
	Policy  Policy
	Fill    float64       // how much of the load for which HCM finds room; 0: all
	Seed    uint64        // of annealing
	Timeout time.Duration // of the ILP's solver
}

// Place places what is not placed yet of an app. Annealing and the ILP may move what is.
func (h *How) Place(ctx context.Context, s *placement.State, d *placement.Deployment) error {
	switch h.Policy {
	case HCM:
		return s.HCM(d, placement.Options{})
	case Annealing:
		return s.Anneal(d, placement.AnnealOptions{Seed: h.Seed})
	case Spread:
		return s.Anneal(d, placement.AnnealOptions{Seed: h.Seed, Weights: h.Policy.Weights()})
	case ILP:
		free := 0
		for i := range d.App.Services {
			if d.App.Services[i].Node == "" {
				free++
			}
		}
		if free*s.Topology().Len() > maxILP {
			return fmt.Errorf("an ILP of %d microservices on %d nodes: no solver answers with more than %d choices: take fewer microservices (shards, backups) or servers, pin some, or take anneal", free, s.Topology().Len(), maxILP)
		}
		return s.ILP(ctx, d, placement.ILPOptions{Timeout: h.Timeout})
	}
	return fmt.Errorf("policy %q is unknown", h.Policy)
}

// Placed is a setup whose microservices are on nodes.
type Placed struct {
	*Setup
	Plan       float64 // requests/s for which it was placed
	Deployment *placement.Deployment
	instances  []instance
	first      []call
	ends       []float64 // of messages through a network, of each instance for each of its requests
}

// Place places the application for the share How.Fill of the most requests a second that HCM finds room for, to a thousandth. A policy that finds no
// room tries a tenth less, as often as need be. It fails with a *placement.RefusedError where a microservice has no room even without requests.
func (s *Setup) Place(ctx context.Context, h How) (*Placed, error) {
	if s.Backups < 0 || s.Backups > maxBackups {
		return nil, fmt.Errorf("backups: %d is not between 0 and %d", s.Backups, maxBackups)
	}
	if !(h.Fill >= 0 && h.Fill <= 1) {
		return nil, fmt.Errorf("fill: %v is not between 0 and 1", h.Fill)
	}
	load, err := s.most(ctx)
	if err != nil {
		return nil, err
	}
	if h.Fill > 0 {
		load *= h.Fill
	}
	for {
		p, err := s.placeFor(ctx, h, load)
		if err == nil {
			return p, nil
		}
		if _, refused := errors.AsType[*placement.RefusedError](err); !refused && !errors.Is(err, placement.ErrNotFound) && !errors.Is(err, placement.ErrInfeasible) || load < leastLoad {
			return nil, err
		}
		load *= 0.9
	}
}

const (
	maxBackups = 10
	maxILP     = 250
	leastLoad  = 1e-3 // requests/s
)

// most is the most requests a second for which HCM finds room.
func (s *Setup) most(ctx context.Context) (float64, error) {
	fits := func(load float64) error {
		_, err := s.placeFor(ctx, How{Policy: HCM}, load)
		return err
	}
	low, high := 0.0, 1.0
	if err := fits(0); err != nil {
		return 0, err
	}
	for high < 1e10 && ctx.Err() == nil && fits(high) == nil {
		low, high = high, 2*high
	}
	for high-low > high/1000 && high > leastLoad && ctx.Err() == nil {
		if mid := (low + high) / 2; fits(mid) == nil {
			low = mid
		} else {
			high = mid
		}
	}
	return low, ctx.Err()
}

func (s *Setup) placeFor(ctx context.Context, h How, load float64) (*Placed, error) {
	app, err := s.Application.app(load, min(s.Backups, len(s.Cluster.Servers)-1), s.Cluster.hosts())
	if err != nil {
		return nil, err
	}
	state := placement.NewState(s.Cluster.topo)
	d, err := state.Add(app)
	if err != nil {
		return nil, err
	}
	if err := h.Place(ctx, state, d); err != nil {
		if load == 0 {
			return nil, fmt.Errorf("even without requests: %w", err)
		}
		return nil, fmt.Errorf("for %.4g requests/s: %w", load, err)
	}
	p := &Placed{Setup: s, Plan: load, Deployment: d}
	p.instances, p.first = s.Application.instances()
	p.ends = p.countEnds()
	return p, nil
}

// Peak is the load, in requests/s, at which the first node has as much to do as it can, and that node's name.
func (p *Placed) Peak() (rate float64, bottleneck string) {
	need := make([][2]float64, len(p.Cluster.nodes)) // of a request each second: cores, Mb/s
	for i := range p.instances {
		in, id := &p.instances[i], p.Deployment.Node(i)
		need[id][0] += in.visits * p.seconds(i)
		need[id][1] += megabits(in.visits)
	}
	for id := range need {
		n := p.Cluster.topo.Node(placement.NodeID(id))
		for r, have := range [2]float64{p.Cluster.nodes[id].cores(), float64(n.Capacity[placement.Bandwidth])} {
			if need[id][r] > 0 && (rate == 0 || have/need[id][r] < rate) {
				rate, bottleneck = have/need[id][r], n.Name
			}
		}
	}
	return rate, bottleneck
}

// Hops is how many links of the tree a request crosses in the mean, but for those from and to the client.
func (p *Placed) Hops() (hops float64) {
	for i := range p.instances {
		for _, c := range p.instances[i].calls {
			for _, to := range c.to {
				share := p.instances[i].visits * c.share / float64(len(c.to))
				hops += share * float64(p.Cluster.topo.Hops(p.Deployment.Node(i), p.Deployment.Node(int(to))))
			}
		}
	}
	return hops
}

// Power is what a load takes, in W.
type Power struct {
	Active float64 // what requests took (Table 1)
	Wall   float64 // what the servers took, idle or not (Table 4)
}

// activeKRPJ is thousands of requests per joule of active power, as Table 1 has them, of so many requests a second.
func (w *Power) activeKRPJ(rate float64) float64 { return rate / w.Active / 1000 }

// wallKRPJ is thousands of requests per joule of wall power, as section 5 has them.
func (w *Power) wallKRPJ(rate float64) float64 { return rate / w.Wall / 1000 }

// Power is that of a load of so many requests a second, up to the peak, by arithmetic.
func (p *Placed) Power(rate float64) Power {
	w := Power{Wall: p.Cluster.total(func(s *System) float64 { return s.Idle })}
	for i := range p.instances {
		n, visits := p.node(i), rate*p.instances[i].visits
		system := p.Cluster.Servers[n.server]
		w.Active += visits * p.joules(i)
		w.Wall += (system.Peak - system.Idle) * n.weight * visits * p.seconds(i) / n.cores()
	}
	return w
}

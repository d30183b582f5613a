package placement

import (
	"errors"
	"fmt"
	"slices"
)

// Service is a microservice.
type Service struct {
	Name   string  `json:"name"`
	Demand Vector  `json:"demand"`
	OnNIC  *Vector `json:"on_nic,omitempty"` // demand on a NIC, where it differs: a NIC's cores are slower, or faster at some things

	// Constraints on its node.
	Kinds  []Kind            `json:"kinds,omitempty"`  // allowed ones; none: all
	Labels map[string]string `json:"labels,omitempty"` // that the node must have
	Node   string            `json:"node,omitempty"`   // pinned to it
	// Apart names microservices of the same app that may not be on the same server, which fails as one (section 3.5). It holds both ways.
	Apart []string `json:"apart,omitempty"`
	// MaxColocated is how many microservices its node may run, itself included; 0 is no limit.
	MaxColocated int `json:"max_colocated,omitempty"`

	Stateful bool  `json:"stateful,omitempty"`  // to move it is to move its state (section 3.4)
	MoveCost int64 `json:"move_cost,omitempty"` // of a move, in any unit; 0 is 1, or StatefulMove for a stateful one
}

// StatefulMove is what it costs to move a stateful microservice, relative to a stateless one, unless it says otherwise.
const StatefulMove = 10

// moveCost is that of one move.
func (s *Service) moveCost() int64 {
	switch {
	case s.MoveCost != 0:
		return s.MoveCost
	case s.Stateful:
		return StatefulMove
	}
	return 1
}

// demand is what the microservice takes of a node of a kind.
func (s *Service) demand(kind int) *Vector {
	if kind == NIC.ordinal() && s.OnNIC != nil {
		return s.OnNIC
	}
	return &s.Demand
}

func (s *Service) allows(k Kind) bool { return len(s.Kinds) == 0 || slices.Contains(s.Kinds, k) }

// Edge is a channel between two microservices, in the direction of the calls.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Traffic, in Mb/s, weighs how far apart the two are, in the cost of annealing and the ILP. It reserves nothing: no node or link is too
	// slow for it. What a microservice needs of its node's link is the Bandwidth of its Demand, which counts whoever it talks to.
	Traffic int64 `json:"traffic,omitempty"`
}

// App is an application: a directed acyclic graph of microservices (section 3.1). It does not change.
type App struct {
	Name     string
	Services []Service
	Edges    []Edge

	ids     map[string]int32
	callees [][]int32 // by microservice, in the order of the edges
	callers [][]int32
	rivals  [][]int32 // that have to be apart
	peers   [][]peer  // both directions, for costs
	traffic int64     // sum
}

type peer struct {
	service int32
	traffic int64
}

// NewApp makes an app. It refuses names that are empty, used twice or unknown, negative amounts, unknown kinds, edges that form a cycle,
// and one that is there twice. It keeps the slices. O(services + edges).
func NewApp(name string, services []Service, edges []Edge) (*App, error) {
	n := len(services)
	a := &App{Name: name, Services: services, Edges: edges, ids: make(map[string]int32, n),
		callees: make([][]int32, n), callers: make([][]int32, n), rivals: make([][]int32, n), peers: make([][]peer, n)}
	for _, step := range []func() error{a.check, a.separate, a.connect, a.acyclic} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("app %q: %w", name, err)
		}
	}
	return a, nil
}

func (a *App) check() error {
	if a.Name == "" {
		return errors.New("it has no name")
	}
	if len(a.Services) == 0 {
		return errors.New("it has no microservices")
	}
	for i := range a.Services {
		s := &a.Services[i]
		if s.Name == "" {
			return fmt.Errorf("microservice %d has no name", i+1)
		}
		if _, ok := a.ids[s.Name]; ok {
			return fmt.Errorf("two microservices are named %q", s.Name)
		}
		a.ids[s.Name] = int32(i)
		if err := s.valid(); err != nil {
			return fmt.Errorf("microservice %q: %w", s.Name, err)
		}
	}
	return nil
}

func (s *Service) valid() error {
	if err := s.Demand.valid(); err != nil {
		return fmt.Errorf("demand: %w", err)
	}
	if s.OnNIC != nil {
		if err := s.OnNIC.valid(); err != nil {
			return fmt.Errorf("on_nic: %w", err)
		}
	}
	for _, k := range s.Kinds {
		if err := k.valid(); err != nil {
			return err
		}
	}
	if s.MaxColocated < 0 {
		return fmt.Errorf("max_colocated is %d; it has to be at least 1, or 0 for no limit", s.MaxColocated)
	}
	if s.MoveCost < 0 || s.MoveCost > maxAmount {
		return fmt.Errorf("move_cost is %d, which is not between 0 and %d", s.MoveCost, int64(maxAmount))
	}
	return nil
}

// separate makes Apart hold both ways.
func (a *App) separate() error {
	type pair struct{ a, b int32 }
	seen := make(map[pair]bool)
	for i := range a.Services {
		s := &a.Services[i]
		for _, name := range s.Apart {
			j, ok := a.ids[name]
			if !ok {
				return fmt.Errorf("microservice %q: apart from %q, which is none of the app", s.Name, name)
			}
			if int(j) == i {
				return fmt.Errorf("microservice %q cannot be apart from itself", s.Name)
			}
			p := pair{min(int32(i), j), max(int32(i), j)}
			if !seen[p] {
				seen[p] = true
				a.rivals[i], a.rivals[j] = append(a.rivals[i], j), append(a.rivals[j], int32(i))
			}
		}
	}
	return nil
}

func (a *App) connect() error {
	seen := make(map[[2]int32]bool, len(a.Edges))
	for _, e := range a.Edges {
		from, ok := a.ids[e.From]
		if !ok {
			return fmt.Errorf("edge %q to %q: there is no microservice %[1]q", e.From, e.To)
		}
		to, ok := a.ids[e.To]
		if !ok {
			return fmt.Errorf("edge %q to %q: there is no microservice %[2]q", e.From, e.To)
		}
		if e.Traffic < 0 || e.Traffic > maxAmount {
			return fmt.Errorf("edge %q to %q: traffic is %d, which is not between 0 and %d", e.From, e.To, e.Traffic, int64(maxAmount))
		}
		if seen[[2]int32{from, to}] {
			return fmt.Errorf("edge %q to %q is there twice", e.From, e.To)
		}
		seen[[2]int32{from, to}] = true
		a.callees[from], a.callers[to] = append(a.callees[from], to), append(a.callers[to], from)
		a.peers[from], a.peers[to] = append(a.peers[from], peer{to, e.Traffic}), append(a.peers[to], peer{from, e.Traffic})
		a.traffic += e.Traffic
	}
	return nil
}

// acyclic takes microservices away that no other one left calls (Kahn, CACM 1962).
func (a *App) acyclic() error {
	calls := make([]int, len(a.Services))
	for i := range calls {
		calls[i] = len(a.callers[i])
	}
	ready := a.sources()
	for done := 0; done < len(ready); done++ {
		for _, to := range a.callees[ready[done]] {
			if calls[to]--; calls[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	if i := slices.IndexFunc(calls, func(n int) bool { return n > 0 }); i >= 0 {
		return fmt.Errorf("microservice %q calls itself or is called by such a one: edges form a cycle", a.Services[i].Name)
	}
	return nil
}

// sources are the microservices that no other one calls, in order.
func (a *App) sources() (ids []int32) {
	for i := range a.Services {
		if len(a.callers[i]) == 0 {
			ids = append(ids, int32(i))
		}
	}
	return ids
}

// breadthFirst lists all microservices in the order in which Algorithm 1 takes them from its queue, each once: when one comes again, it and all
// that it calls are deployed.
func (a *App) breadthFirst() []int32 {
	queue := a.sources()
	queued := make([]bool, len(a.Services))
	for next := 0; next < len(queue); next++ {
		for _, w := range a.callees[queue[next]] {
			if !queued[w] {
				queued[w] = true
				queue = append(queue, w)
			}
		}
	}
	return queue
}

// ID finds a microservice's index by its name.
func (a *App) ID(name string) (int, bool) {
	i, ok := a.ids[name]
	return int(i), ok
}

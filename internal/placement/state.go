package placement

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// State is a cluster and what runs on it. It is not safe for concurrent use.
type State struct {
	topo  *Topology
	nodes []nodeState
	index [kinds]index
	apps  map[string]*Deployment
	query query // scratch
}

// nodeState is about one node.
type nodeState struct {
	free  Vector // capacity less load and demands; negative where too much is there
	load  Vector
	tasks []task
	limit int // least MaxColocated of its tasks
	down  bool
}

// task is a microservice that is deployed.
type task struct {
	d *Deployment
	i int32
}

func (t task) service() *Service { return &t.d.App.Services[t.i] }

// Deployment is an app in a State and where its microservices run.
type Deployment struct {
	App *App
	at  []NodeID
}

// Node is where the microservice of an index runs, or Nowhere.
func (d *Deployment) Node(i int) NodeID { return d.at[i] }

// Nodes copies where all microservices run, by their index.
func (d *Deployment) Nodes() []NodeID { return slices.Clone(d.at) }

// NewState is a cluster on which nothing runs. O(nodes).
func NewState(t *Topology) *State {
	s := &State{topo: t, nodes: make([]nodeState, t.Len()), apps: make(map[string]*Deployment)}
	for id := range s.nodes {
		n := &s.nodes[id]
		n.load, n.limit = t.nodes[id].Load, math.MaxInt
		n.free = t.nodes[id].Capacity
		n.free.sub(&n.load)
	}
	for k := range kinds {
		s.index[k] = newIndex(t.byKind[k], s.entry)
	}
	s.query = query{s: s, banned: make([]uint32, len(t.groups))}
	return s
}

// Topology is the cluster's.
func (s *State) Topology() *Topology { return s.topo }

// entry is what the index is to know of a node.
func (s *State) entry(id NodeID) entry {
	n := &s.nodes[id]
	if n.down || len(n.tasks) >= n.limit {
		return nothing
	}
	e := entry{most: n.free, least: s.topo.share.of(&n.free), labels: isOpen}
	for key, value := range s.topo.nodes[id].Labels {
		e.labels |= s.topo.bits[key+"\x00"+value]
	}
	return e
}

func (s *State) reindex(id NodeID) {
	s.index[s.topo.nodes[id].Kind.ordinal()].set(s.topo.rank[id], s.entry(id))
}

// Add adds an app, of which nothing runs yet. It fails if one of that name is there, or if a microservice is pinned to an unknown node.
func (s *State) Add(a *App) (*Deployment, error) {
	if _, ok := s.apps[a.Name]; ok {
		return nil, fmt.Errorf("app %q is there already", a.Name)
	}
	for i := range a.Services {
		if pin := a.Services[i].Node; pin != "" {
			if _, ok := s.topo.ID(pin); !ok {
				return nil, fmt.Errorf("app %q: microservice %q is pinned to the node %q, which does not exist", a.Name, a.Services[i].Name, pin)
			}
		}
	}
	d := &Deployment{App: a, at: make([]NodeID, len(a.Services))}
	for i := range d.at {
		d.at[i] = Nowhere
	}
	s.apps[a.Name] = d
	return d, nil
}

// Remove takes an app away. O(microservices log nodes).
func (s *State) Remove(d *Deployment) {
	for i := range d.at {
		s.lift(d, int32(i))
	}
	delete(s.apps, d.App.Name)
}

// Apps lists the apps by name.
func (s *State) Apps() (all []*Deployment) {
	for _, name := range slices.Sorted(maps.Keys(s.apps)) {
		all = append(all, s.apps[name])
	}
	return all
}

// Place puts a microservice on a node, or Nowhere, whatever the constraints say: Check tells. O(log nodes).
func (s *State) Place(d *Deployment, i int, id NodeID) {
	s.lift(d, int32(i))
	if id != Nowhere {
		s.put(d, int32(i), id)
	}
}

func (s *State) put(d *Deployment, i int32, id NodeID) {
	n, t := &s.nodes[id], task{d, i}
	d.at[i] = id
	n.tasks = append(n.tasks, t)
	n.free.sub(t.service().demand(s.topo.nodes[id].Kind.ordinal()))
	n.limit = min(n.limit, limit(t.service()))
	s.reindex(id)
}

// lift takes a microservice off its node, if it has one.
func (s *State) lift(d *Deployment, i int32) {
	id := d.at[i]
	if id == Nowhere {
		return
	}
	n, t := &s.nodes[id], task{d, i}
	d.at[i] = Nowhere
	at := slices.Index(n.tasks, t)
	n.tasks = slices.Delete(n.tasks, at, at+1)
	n.free.add(t.service().demand(s.topo.nodes[id].Kind.ordinal()))
	n.limit = math.MaxInt
	for _, other := range n.tasks {
		n.limit = min(n.limit, limit(other.service()))
	}
	s.reindex(id)
}

func limit(v *Service) int {
	if v.MaxColocated == 0 {
		return math.MaxInt
	}
	return v.MaxColocated
}

// SetDown says that a node has failed or is there again. What runs on it stays there until Replace. O(log nodes).
func (s *State) SetDown(id NodeID, down bool) {
	s.nodes[id].down = down
	s.reindex(id)
}

// SetLoad sets a node's statistics: what is in use by others than the microservices placed. O(log nodes).
func (s *State) SetLoad(id NodeID, load Vector) error {
	if err := load.valid(); err != nil {
		return fmt.Errorf("node %q: load: %w", s.topo.name(id), err)
	}
	n := &s.nodes[id]
	n.free.add(&n.load)
	n.load = load
	n.free.sub(&n.load)
	s.reindex(id)
	return nil
}

// Free is what a node has left; negative amounts are what it lacks.
func (s *State) Free(id NodeID) Vector { return s.nodes[id].free }

// Move is the state on another topology: nodes with the same name keep what runs on them, their load, and whether they are down. What ran on
// nodes that are not there any more runs nowhere, until Replace. Deployments stay valid, for the new state only. It fails if a
// microservice is pinned to a node that is not there. O(nodes + microservices log nodes).
func (s *State) Move(t *Topology) (*State, error) {
	to := NewState(t)
	for _, d := range s.apps {
		for i := range d.App.Services {
			if pin := d.App.Services[i].Node; pin != "" {
				if _, ok := t.ID(pin); !ok {
					return nil, fmt.Errorf("app %q: microservice %q is pinned to the node %q, which is not there any more: remove the app first", d.App.Name, d.App.Services[i].Name, pin)
				}
			}
		}
	}
	for id := range s.nodes {
		n := &s.nodes[id]
		if there, ok := t.ID(s.topo.nodes[id].Name); ok && (n.down || n.load != s.topo.nodes[id].Load) {
			if err := to.SetLoad(there, n.load); err != nil {
				return nil, err
			}
			to.SetDown(there, n.down)
		}
	}
	for _, d := range s.Apps() {
		to.apps[d.App.Name] = d
		for i, id := range d.at {
			d.at[i] = Nowhere
			if id == Nowhere {
				continue
			}
			if there, ok := t.ID(s.topo.nodes[id].Name); ok {
				to.put(d, int32(i), there)
			}
		}
	}
	return to, nil
}

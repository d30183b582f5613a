package placement

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Kind says what processor a node is.
type Kind string

// The kinds of nodes.
const (
	NIC  Kind = "nic"
	Host Kind = "host"
)

const kinds = 2

// ordinal counts kinds in the order in which a level's nodes are tried: NICs before hosts (section 3.3).
func (k Kind) ordinal() int {
	if k == NIC {
		return 0
	}
	return 1
}

func (k Kind) valid() error {
	if k != NIC && k != Host {
		return fmt.Errorf("kind %q: it has to be %s or %s", k, NIC, Host)
	}
	return nil
}

// Node is a computing node: a leaf of the topology.
type Node struct {
	Name     string            `json:"name"`
	Parent   string            `json:"parent"` // group: its server
	Kind     Kind              `json:"kind"`
	Capacity Vector            `json:"capacity"`
	Load     Vector            `json:"load,omitzero"` // statistic: in use by others than the microservices placed here
	Labels   map[string]string `json:"labels,omitempty"`
}

// Group is an inner node of the topology: a server, a rack, a pod. One group, the root, has no parent.
type Group struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"`
}

// NodeID is a node's number in tree order.
type NodeID int32

// Nowhere is no node.
const Nowhere NodeID = -1

// Topology is a tree whose leaves are the nodes. It does not change.
type Topology struct {
	nodes  []Node // in tree order
	above  []int32
	rank   []int32           // of a node among those of its kind
	byKind [kinds][]NodeID   // in tree order
	groups []group           // the root is first
	ids    map[string]NodeID // by name
	share  shares
	bits   map[string]uint64 // of labels
	width  int               // the most links between two nodes
}

// group is a run of nodes, and for each kind a run of that kind's nodes.
type group struct {
	name   string
	above  int32 // -1: root
	depth  int32
	lo, hi NodeID
	span   [kinds]span
}

// span is a run of nodes of one kind, by rank.
type span struct{ lo, hi int32 }

// New makes a topology of groups and nodes, in any order; below a group, nodes come before groups, and each in the order given.
//
// It refuses names that are empty or used twice, parents that do not exist, cycles, more or fewer roots than one, groups without nodes,
// and nodes of unknown kind, with a negative amount, or without cores, memory, bandwidth or room for requests. O(groups + nodes).
func New(groups []Group, nodes []Node) (*Topology, error) {
	if len(nodes) == 0 {
		return nil, errors.New("topology: it has no nodes")
	}
	b := builder{groups: groups, nodes: nodes, index: make(map[string]int32, len(groups)), below: make([][]int32, len(groups)), leaves: make([][]int32, len(groups))}
	for _, step := range []func() error{b.name, b.attach, b.walk} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("topology: %w", err)
		}
	}
	return b.t, nil
}

type builder struct {
	groups []Group
	nodes  []Node
	index  map[string]int32 // of groups
	below  [][]int32        // groups of a group
	leaves [][]int32        // nodes of a group
	root   int32
	t      *Topology
}

func (b *builder) name() error {
	for i, g := range b.groups {
		if g.Name == "" {
			return fmt.Errorf("group %d has no name", i+1)
		}
		if _, ok := b.index[g.Name]; ok {
			return fmt.Errorf("two groups are named %q", g.Name)
		}
		b.index[g.Name] = int32(i)
	}
	names := make(map[string]struct{}, len(b.nodes))
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.Name == "" {
			return fmt.Errorf("node %d has no name", i+1)
		}
		if _, ok := names[n.Name]; ok {
			return fmt.Errorf("two nodes are named %q", n.Name)
		}
		names[n.Name] = struct{}{}
		if err := n.valid(); err != nil {
			return fmt.Errorf("node %q: %w", n.Name, err)
		}
	}
	return nil
}

// has tells whether the node has all these labels.
func (n *Node) has(labels map[string]string) bool {
	for key, value := range labels {
		if have, ok := n.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

func (n *Node) valid() error {
	if err := n.Kind.valid(); err != nil {
		return err
	}
	if err := n.Capacity.valid(); err != nil {
		return fmt.Errorf("capacity: %w", err)
	}
	for _, r := range []Resource{Cores, Memory, Bandwidth, Requests} {
		if n.Capacity[r] == 0 {
			return fmt.Errorf("capacity: %s is missing or 0", r)
		}
	}
	if err := n.Load.valid(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// attach links groups and nodes to their parents.
func (b *builder) attach() error {
	b.root = -1
	for i, g := range b.groups {
		if g.Parent == "" {
			if b.root >= 0 {
				return fmt.Errorf("groups %q and %q have no parent; only the root may have none", b.groups[b.root].Name, g.Name)
			}
			b.root = int32(i)
			continue
		}
		p, ok := b.index[g.Parent]
		if !ok {
			return fmt.Errorf("group %q: there is no parent %q", g.Name, g.Parent)
		}
		b.below[p] = append(b.below[p], int32(i))
	}
	if b.root < 0 {
		return errors.New("no group is the root: every one has a parent")
	}
	for i := range b.nodes {
		n := &b.nodes[i]
		p, ok := b.index[n.Parent]
		if !ok {
			return fmt.Errorf("node %q: there is no parent %q", n.Name, n.Parent)
		}
		b.leaves[p] = append(b.leaves[p], int32(i))
	}
	return nil
}

// walk numbers nodes and groups in tree order.
func (b *builder) walk() error {
	n := len(b.nodes)
	t := &Topology{nodes: make([]Node, 0, n), above: make([]int32, 0, n), rank: make([]int32, 0, n), ids: make(map[string]NodeID, n), bits: make(map[string]uint64)}
	b.t = t
	type visit struct{ group, above int32 }
	number := make([]int32, len(b.groups))
	for todo := []visit{{b.root, -1}}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		at := int32(len(t.groups))
		number[v.group] = at + 1 // 0: not visited
		t.open(b.groups[v.group].Name, v.above)
		for _, leaf := range b.leaves[v.group] {
			t.append(b.nodes[leaf], at)
		}
		for _, child := range slices.Backward(b.below[v.group]) {
			todo = append(todo, visit{child, at})
		}
	}
	if i := slices.Index(number, 0); i >= 0 {
		return fmt.Errorf("group %q is below itself or below such a group: its parents form a cycle", b.groups[i].Name)
	}
	t.close()
	for _, g := range t.groups {
		if g.lo == g.hi {
			return fmt.Errorf("group %q has no nodes", g.name)
		}
	}
	t.weigh()
	return nil
}

func (t *Topology) open(name string, above int32) {
	g := group{name: name, above: above, lo: NodeID(len(t.nodes))}
	if above >= 0 {
		g.depth = t.groups[above].depth + 1
	}
	for k := range g.span {
		g.span[k].lo = int32(len(t.byKind[k]))
	}
	g.hi = g.lo
	t.groups = append(t.groups, g)
}

func (t *Topology) append(n Node, above int32) {
	n.Parent = t.groups[above].name // so that New and its caller share no memory but strings
	n.Labels = maps.Clone(n.Labels)
	id, k := NodeID(len(t.nodes)), n.Kind.ordinal()
	t.nodes = append(t.nodes, n)
	t.above = append(t.above, above)
	t.rank = append(t.rank, int32(len(t.byKind[k])))
	t.byKind[k] = append(t.byKind[k], id)
	t.ids[n.Name] = id
}

// close ends the runs of groups: a group's descendants follow it, up to the next that is not below it.
func (t *Topology) close() {
	for i := range t.groups {
		g := &t.groups[i]
		g.hi = g.lo
	}
	for id, above := range t.above {
		t.groups[above].hi = max(t.groups[above].hi, NodeID(id)+1)
	}
	for i := len(t.groups) - 1; i > 0; i-- {
		up := &t.groups[t.groups[i].above]
		up.hi = max(up.hi, t.groups[i].hi)
	}
	for i := range t.groups {
		g := &t.groups[i]
		for k := range g.span {
			g.span[k].hi = g.span[k].lo
			below := t.byKind[k][g.span[k].lo:]
			n, _ := slices.BinarySearch(below, g.hi)
			g.span[k].hi += int32(n)
		}
	}
}

// weigh finds what resources weigh, the labels' bits, and how far apart nodes can be.
func (t *Topology) weigh() {
	var most Vector
	deepest := int32(0)
	for i := range t.nodes {
		for r, amount := range t.nodes[i].Capacity {
			most[r] = max(most[r], amount)
		}
		for key, value := range t.nodes[i].Labels {
			label := key + "\x00" + value
			if _, ok := t.bits[label]; !ok {
				t.bits[label] = 2 << (len(t.bits) % 62) // not 1, which is isOpen
			}
		}
		deepest = max(deepest, t.groups[t.above[i]].depth)
	}
	for r := range most {
		t.share[r] = max(1, whole/max(1, most[r]))
	}
	t.width = 2 * (int(deepest) + 1)
}

// Len is the number of nodes.
func (t *Topology) Len() int { return len(t.nodes) }

// Node is a node, which the caller must not change.
func (t *Topology) Node(id NodeID) *Node { return &t.nodes[id] }

// ID finds a node by its name.
func (t *Topology) ID(name string) (NodeID, bool) {
	id, ok := t.ids[name]
	return id, ok
}

// Server is the name of the group right above a node: what fails together (section 3.5).
func (t *Topology) Server(id NodeID) string { return t.groups[t.above[id]].name }

// name is a node's name, for messages.
func (t *Topology) name(id NodeID) string {
	if id == Nowhere {
		return "nowhere"
	}
	return t.nodes[id].Name
}

// Hops is the number of links of the tree between two nodes: 0 for the same node, 2 within a server, 4 within a rack. O(depth).
func (t *Topology) Hops(a, b NodeID) int {
	if a == b {
		return 0
	}
	hops, g, h := 2, t.above[a], t.above[b]
	for g != h {
		if t.groups[g].depth < t.groups[h].depth {
			g, h = h, g
		}
		g = t.groups[g].above
		hops++
	}
	return hops
}

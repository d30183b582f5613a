package placement

// Constraint is a reason why a node is refused.
type Constraint uint8

// The constraints, in the order in which they are tried. A node is refused by the first that it does not meet.
const (
	Met       Constraint = iota // no reason
	Down                        // the node has failed
	Pinned                      // the microservice is pinned to another node
	WrongKind                   // the node's kind is not allowed
	Labels                      // the node lacks a label
	Apart                       // one that has to be apart is on its server
	Colocated                   // too many microservices are on the node, for this one or for one of them
	short                       // and the resource
)

var constraintNames = [...]string{Met: "none", Down: "down", Pinned: "pinned elsewhere", WrongKind: "kind", Labels: "labels", Apart: "apart", Colocated: "max_colocated"}

// Short is the constraint that a node has enough of a resource.
func Short(r Resource) Constraint { return short + Constraint(r) }

// Resource is the one that is short; ok is false for other constraints.
func (c Constraint) Resource() (r Resource, ok bool) {
	return Resource(c - short), c >= short && c < short+Constraint(resources)
}

// String names the constraint or the resource.
func (c Constraint) String() string {
	if r, ok := c.Resource(); ok {
		return r.String()
	}
	return constraintNames[c]
}

// query is for nodes for a microservice.
type query struct {
	s       *State
	service *Service
	pin     NodeID
	allowed [kinds]bool
	labels  uint64
	limit   int
	// Of each group, the number of the last query in which it was a server of a microservice that has to be apart.
	banned []uint32
	number uint32
}

// ask begins a query. It is valid until the next one or until the state changes.
func (s *State) ask(d *Deployment, i int32) *query {
	q := &s.query
	q.service, q.pin, q.labels = &d.App.Services[i], Nowhere, isOpen
	q.limit = limit(q.service)
	for k, kind := range [kinds]Kind{NIC, Host} {
		q.allowed[k] = q.service.allows(kind)
	}
	if q.service.Node != "" {
		q.pin = s.topo.ids[q.service.Node]
	}
	for key, value := range q.service.Labels {
		q.labels |= s.topo.bits[key+"\x00"+value] // 0 if no node has it; then every node is refused on its own
	}
	if q.number++; q.number == 0 { // after 2^32 queries
		clear(q.banned)
		q.number = 1
	}
	for _, rival := range d.App.rivals[i] {
		if at := d.at[rival]; at != Nowhere {
			q.banned[s.topo.above[at]] = q.number
		}
	}
	return q
}

// identity is the first constraint on what a node is that n does not meet.
func (s *Service) identity(n *Node) Constraint {
	switch {
	case s.Node != "" && s.Node != n.Name:
		return Pinned
	case !s.allows(n.Kind):
		return WrongKind
	case !n.has(s.Labels):
		return Labels
	}
	return Met
}

func (q *query) identity(id NodeID) Constraint { return q.service.identity(&q.s.topo.nodes[id]) }

// refusal is the first constraint, but for resources, that a node does not meet.
func (q *query) refusal(id NodeID) Constraint {
	n := &q.s.nodes[id]
	if n.down {
		return Down
	}
	if c := q.identity(id); c != Met {
		return c
	}
	if q.banned[q.s.topo.above[id]] == q.number {
		return Apart
	}
	if len(n.tasks) >= min(q.limit, n.limit) {
		return Colocated
	}
	return Met
}

func (q *query) allows(id NodeID) bool { return q.refusal(id) == Met }

// demand is what the microservice needs of a node.
func (q *query) demand(id NodeID) *Vector {
	return q.service.demand(q.s.topo.nodes[id].Kind.ordinal())
}

func (q *query) fits(id NodeID) bool {
	return q.s.nodes[id].free.covers(q.demand(id)) && q.allows(id)
}

// over searches nodes of one kind, and goes on from what was found of the other.
func (q *query) over(kind int, in span, found *search, by func(*search)) {
	if !q.allowed[kind] {
		return
	}
	if q.pin != Nowhere {
		rank := q.s.topo.rank[q.pin]
		if q.s.topo.nodes[q.pin].Kind.ordinal() != kind || rank < in.lo || rank >= in.hi {
			return
		}
		in = span{rank, rank + 1}
	}
	found.index, found.span = &q.s.index[kind], in
	found.need, found.labels, found.share = q.service.demand(kind), q.labels, &q.s.topo.share
	found.offset = found.share.of(found.need)
	found.fits = q.fits
	by(found)
}

func (q *query) everywhere(by func(*search)) NodeID {
	found := search{found: Nowhere}
	for k := range kinds {
		q.over(k, span{0, int32(len(q.s.topo.byKind[k]))}, &found, by)
	}
	return found.found
}

// firstFit is the paper's find_first_fit where a node fits, and else Nowhere.
func (q *query) firstFit() NodeID { return q.everywhere((*search).firstFit) }

// bestFit is the paper's find_best_fit among a level's nodes: the one on which least is left.
func (q *query) bestFit(l *level) NodeID {
	found := search{found: Nowhere}
	for i := range l.spans[:l.n] {
		q.over(l.spans[i].kind, l.spans[i].span, &found, (*search).bestFit)
	}
	return found.found
}

// closest is the node closest to the constraints: it lacks the least, and meets those that are not about resources. Nowhere if none does.
func (q *query) closest() NodeID {
	return q.everywhere(func(s *search) {
		s.fits = q.allows
		s.nearest()
	})
}

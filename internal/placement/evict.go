package placement

import (
	"math"
	"slices"
)

// evictor takes microservices off nodes.
type evictor struct {
	*State
	left map[task]*Eviction // nil: nobody asks why
}

// misplaced takes microservices off nodes on which they cannot be, however much else goes: nodes that are down or have changed.
func (e *evictor) misplaced(apps []*Deployment) {
	for _, d := range apps {
		for i, id := range d.at {
			if id == Nowhere {
				continue
			}
			c := d.App.Services[i].identity(&e.topo.nodes[id])
			if e.nodes[id].down {
				c = Down
			}
			if c != Met {
				e.evict([]task{{d, int32(i)}}, func(t task) []Violation { return []Violation{e.violation(t, c)} }, nil)
			}
		}
	}
}

// evict takes tasks off their nodes. Broken and instead, which is what would go if a task stayed, are for explanations.
func (e *evictor) evict(gone []task, broken func(task) []Violation, instead func(task) ([]task, bool)) {
	for _, t := range gone {
		if e.left != nil {
			e.left[t] = e.eviction(t, gone, broken(t), instead)
		}
	}
	for _, t := range gone {
		e.lift(t.d, t.i)
	}
}

// apart takes an app's microservices off servers where others are from which they have to be apart.
func (e *evictor) apart(d *Deployment) {
	servers := make(map[int32][]task)
	var order []int32
	for i, id := range d.at {
		t := task{d, int32(i)}
		if id == Nowhere || len(e.near(t)) == 0 {
			continue
		}
		server := e.topo.above[id]
		if servers[server] == nil {
			order = append(order, server)
		}
		servers[server] = append(servers[server], t)
	}
	for _, server := range order {
		tasks := servers[server]
		gone, _ := e.separate(tasks, task{})
		e.evict(gone, func(t task) []Violation {
			return []Violation{e.violation(t, Apart)}
		}, func(t task) ([]task, bool) { return e.separate(tasks, t) })
	}
}

// pinnedPrice is more than all moves cost of as many tasks as are tried in all subsets. Of two that are pinned to one server and have to be
// apart, one has to go.
const pinnedPrice = fewTasks * maxAmount

// separate chooses which of the tasks of a server go, so that none of the others have to be apart; one may have to stay, and then so do those that
// are pinned.
func (e *evictor) separate(tasks []task, stays task) (gone []task, ok bool) {
	var c cover
	var may []task
	rows := make(map[[2]int32]int)
	for _, t := range tasks {
		price := t.service().moveCost()
		if t.service().Node != "" {
			price = pinnedPrice
		}
		var all []relief
		for _, j := range e.near(t) {
			pair := [2]int32{min(t.i, j), max(t.i, j)}
			row, known := rows[pair]
			if !known {
				row = len(c.short)
				rows[pair] = row
				c.short = append(c.short, 1)
			}
			all = append(all, relief{row, 1})
		}
		if t != stays && (stays.d == nil || t.service().Node == "") {
			may, c.price, c.relief = append(may, t), append(c.price, price), append(c.relief, all)
		}
	}
	set, ok := c.solve()
	return pick(may, set), ok
}

// near are those on a task's server from which it has to be apart.
func (e *evictor) near(t task) (all []int32) {
	server := e.topo.above[t.d.at[t.i]]
	for _, j := range t.d.App.rivals[t.i] {
		if at := t.d.at[j]; at != Nowhere && e.topo.above[at] == server {
			all = append(all, j)
		}
	}
	return all
}

func pick(from []task, set []int) (all []task) {
	for _, k := range set {
		all = append(all, from[k])
	}
	return all
}

// overload takes tasks off a node until the others fit.
func (e *evictor) overload(id NodeID) {
	broken := e.overloaded(id)
	if len(broken) == 0 {
		return
	}
	gone, _ := e.relieve(id, task{})
	e.evict(gone, func(task) []Violation { return broken }, func(t task) ([]task, bool) { return e.relieve(id, t) })
}

// overloaded lists what a node lacks for its tasks, and the task that allows the fewest beside it if there are more.
func (e *evictor) overloaded(id NodeID) (all []Violation) {
	n := &e.nodes[id]
	if len(n.tasks) == 0 {
		return nil
	}
	for r, free := range n.free {
		if free < 0 {
			all = append(all, Violation{Node: e.topo.name(id), Constraint: Short(Resource(r)), Short: -free})
		}
	}
	if len(n.tasks) > n.limit {
		tightest := slices.IndexFunc(n.tasks, func(t task) bool { return limit(t.service()) == n.limit })
		v := e.violation(n.tasks[tightest], Colocated)
		v.Short = int64(len(n.tasks) - n.limit)
		all = append(all, v)
	}
	return all
}

func (e *evictor) violation(t task, c Constraint) Violation {
	return Violation{App: t.d.App.Name, Service: t.service().Name, Node: e.topo.name(t.d.at[t.i]), Constraint: c}
}

// relieve chooses which tasks of a node go, so that it has room for the others; one may have to stay. If all are not enough, which are not pinned, these
// go, and ok is false.
func (e *evictor) relieve(id NodeID, stays task) (gone []task, ok bool) {
	least := int64(math.MaxInt64)
	for _, most := range e.limits(id, stays) {
		if set := e.fit(id, stays, most); set != nil {
			if cost := moveCosts(set); cost < least || cost == least && len(set) < len(gone) {
				gone, least, ok = set, cost, true
			}
		}
	}
	if ok {
		return gone, true
	}
	for _, t := range e.nodes[id].tasks {
		if !fixed(t, stays) {
			gone = append(gone, t)
		}
	}
	return gone, len(gone) == len(e.nodes[id].tasks)
}

func fixed(t, stays task) bool { return t == stays || t.service().Node != "" }

func moveCosts(tasks []task) (sum int64) {
	for _, t := range tasks {
		sum += t.service().moveCost()
	}
	return sum
}

// limits are the numbers of tasks to which those that stay can limit a node. One that is no less than there are tasks is none.
func (e *evictor) limits(id NodeID, stays task) (all []int) {
	tasks := e.nodes[id].tasks
	most := math.MaxInt
	for _, t := range tasks {
		at := limit(t.service())
		if at >= len(tasks) {
			at = math.MaxInt
		}
		if fixed(t, stays) {
			most = min(most, at)
		}
		all = append(all, at)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(n int) bool { return n > most })
}

// fit chooses which tasks go so that a node has room for the others, none of which allows fewer than most of them; nil if that cannot be.
func (e *evictor) fit(id NodeID, stays task, most int) (gone []task) {
	n, kind := &e.nodes[id], e.topo.nodes[id].Kind.ordinal()
	free, count := n.free, len(n.tasks)
	var may []task
	for _, t := range n.tasks {
		switch {
		case fixed(t, stays):
		case limit(t.service()) < most && limit(t.service()) < len(n.tasks):
			gone = append(gone, t)
			free.add(t.service().demand(kind))
			count--
		default:
			may = append(may, t)
		}
	}
	var c cover
	c.relief = make([][]relief, len(may))
	row := func(short int64, of func(*Service) int64) {
		if short <= 0 {
			return
		}
		for k, t := range may {
			if amount := of(t.service()); amount > 0 {
				c.relief[k] = append(c.relief[k], relief{len(c.short), amount})
			}
		}
		c.short = append(c.short, short)
	}
	for r := range free {
		row(-free[r], func(v *Service) int64 { return v.demand(kind)[r] })
	}
	if most < math.MaxInt {
		row(int64(count-most), func(*Service) int64 { return 1 })
	}
	for _, t := range may {
		c.price = append(c.price, t.service().moveCost())
	}
	set, ok := c.solve()
	if !ok {
		return nil
	}
	return append(gone, pick(may, set)...)
}

package placement

import (
	"fmt"
	"strings"
)

// Decision explains why a microservice got its node, whoever decided.
type Decision struct {
	App     string
	Service string
	Caller  string // node from which levels were counted; "" if first fit was asked for
	Node    string // "" if refused
	Pinned  bool   // it had no choice
	Level   int    // of the node; 0 for first fit
	Where   string // the level in words
	Short   Vector // what the node lacks, if it was only the closest to the constraints
	Trials  []Trial
	// Left says why it is not where it was; nil if it was nowhere, or if it was not Replace that decided.
	Left *Eviction
	// Compared is true for annealing and the ILP, which look at all nodes: then Trials have all levels from its own node, and what they cost.
	Compared bool
	Cost     float64 // what the app costs more than if the microservice were nowhere
}

// Trial says what became of the nodes of one level, or of all for first fit.
type Trial struct {
	Level   int
	Where   string // the level in words, "" for all
	Nodes   int
	Refused [short + Constraint(resources)]int // nodes, by the first constraint that they did not meet
	// Nearest is the node that lacked the least, of those that met all constraints but resources; "" if there is none or one fitted.
	Nearest string
	Short   Vector // what it lacked
	// Next is the node of those that fit on which the app would cost the least, and More how much more; "" if it was not compared or none fits.
	Next string
	More float64
}

// Fitting is how many nodes met all constraints.
func (t *Trial) Fitting() int {
	n := t.Nodes
	for _, refused := range t.Refused {
		n -= refused
	}
	return n
}

// String is a line of text.
func (t *Trial) String() string {
	var b strings.Builder
	nodes := fmt.Sprintf("%d nodes", t.Nodes)
	if t.Nodes == 1 {
		nodes = "1 node"
	}
	if t.Level == 0 {
		fmt.Fprintf(&b, "all %s:", nodes)
	} else {
		fmt.Fprintf(&b, "level %d (%s), %s:", t.Level, t.Where, nodes)
	}
	separator := " "
	for c, n := range t.Refused {
		if n > 0 {
			fmt.Fprintf(&b, "%s%d refused by %s", separator, n, Constraint(c))
			separator = ", "
		}
	}
	if n := t.Fitting(); n > 0 {
		fmt.Fprintf(&b, "%s%d fit", separator, n)
	}
	if t.Nearest != "" {
		fmt.Fprintf(&b, "; the nearest, %s, lacks %s", t.Nearest, t.Short)
	}
	if t.Next != "" {
		b.WriteString("; " + t.costs())
	}
	return b.String()
}

// Why is the reason in a few words.
func (d *Decision) Why() string {
	switch {
	case d.Node == "":
		return "refused"
	case d.Compared:
		return d.compared()
	case d.Short != Vector{}:
		return fmt.Sprintf("the closest to the constraints, and lacks %s", d.Short)
	case d.Pinned:
		return "the node that it is pinned to"
	case d.Level == 0:
		return "the first that fits"
	}
	return fmt.Sprintf("the best fit of level %d (%s) from %s", d.Level, d.Where, d.Caller)
}

// String is a few lines of text.
func (d *Decision) String() string {
	where := d.Why()
	if d.Node != "" {
		where = d.Node + " is " + where
	}
	text := d.Service + ": " + where
	if d.Left != nil {
		text += "\n\t" + d.Left.String()
	}
	for i := range d.Trials {
		text += "\n\t" + d.Trials[i].String()
	}
	return text
}

func (d *Decision) reasons() string {
	lines := make([]string, len(d.Trials))
	for i := range d.Trials {
		lines[i] = d.Trials[i].String()
	}
	return strings.Join(lines, "; ")
}

// explain tells how find came to its answer. O(nodes of the levels tried).
func (q *query) explain(at []NodeID, caller, id NodeID, number int) Decision {
	d := Decision{Service: q.service.Name, Pinned: q.service.Node != ""}
	if id != Nowhere {
		d.Node, d.Level, d.Short = q.s.topo.name(id), number, q.lack(id)
	}
	if caller == Nowhere {
		d.Trials = []Trial{q.trial(0, func(visit func(NodeID)) {
			for id := range q.s.nodes {
				visit(NodeID(id))
			}
		})}
		return d
	}
	d.Caller = q.s.topo.name(caller)
	if number > 0 {
		d.Where = q.s.topo.levelName(caller, number)
	}
	d.Trials = append(d.Trials, q.trial(1, func(visit func(NodeID)) { visit(caller) }))
	d.Trials[0].Where = q.s.topo.levelName(caller, 1)
	if d.Trials[0].Fitting() > 0 {
		return d
	}
	q.s.topo.levels(caller, func(l *level) bool {
		t := q.trial(l.number, func(visit func(NodeID)) {
			for _, id := range q.s.topo.nodesOf(l) {
				visit(id)
			}
		})
		t.Where = q.s.topo.levelName(caller, l.number)
		d.Trials = append(d.Trials, t)
		return t.Fitting() == 0
	})
	return d
}

func (q *query) trial(number int, each func(visit func(NodeID))) Trial {
	t := Trial{Level: number}
	nearest, least := Nowhere, 0.0
	each(func(id NodeID) {
		t.Nodes++
		c := q.refusal(id)
		if c == Met {
			c = q.short(id)
			if lacks := q.s.topo.share.missing(&q.s.nodes[id].free, q.demand(id)); nearest == Nowhere || lacks < least {
				nearest, least = id, lacks
			}
		}
		if c != Met {
			t.Refused[c]++
		}
	})
	if nearest != Nowhere && least > 0 {
		t.Nearest, t.Short = q.s.topo.name(nearest), q.lack(nearest)
	}
	return t
}

// short is the first resource of which a node has too little.
func (q *query) short(id NodeID) Constraint {
	lack := q.lack(id)
	for r := range lack {
		if lack[r] > 0 {
			return Short(Resource(r))
		}
	}
	return Met
}

// lack is what a node has too little of.
func (q *query) lack(id NodeID) Vector { return lacking(&q.s.nodes[id].free, q.demand(id)) }

package placement

import "fmt"

// Options are for HCM and Replace.
type Options struct {
	// Overcommit says what happens to a microservice that fits nowhere: it gets the node closest to its constraints, as in the paper, and
	// that node has more to do than it can. Only resources give way. Otherwise it is refused.
	Overcommit bool
	// Explain, if not nil, is called for each decision. It makes HCM look at every node of the levels tried, and Replace at what else could move.
	Explain func(Decision)
}

// RefusedError says that a microservice fits nowhere.
type RefusedError struct {
	App      string
	Decision Decision
}

// Error says why.
func (e *RefusedError) Error() string {
	text := fmt.Sprintf("app %q: no node fits microservice %q: %s", e.App, e.Decision.Service, e.Decision.reasons())
	if left := e.Decision.Left; left != nil {
		text += "; " + left.String()
	}
	return text
}

// HCM places what of an app is not deployed yet (Algorithm 1). A microservice that no other one calls goes to the first node that fits; what
// it calls goes, breadth first, to the nearest level of nodes that has one that fits, and there to the one on which least is left.
//
// What is deployed already stays, as the text of section 3.3 has it; line 14 of the listing alone would place a microservice again for
// each of its callers. Microservices join the queue once: a second visit would find all that it looks at deployed.
//
// Those that are pinned to a node go there first, as they have no choice: else others, which have one, could take their room. Algorithm 1 has no
// such constraint, and is as it is for the others.
//
// If one is refused, HCM undoes what it did and returns a *RefusedError.
func (s *State) HCM(d *Deployment, o Options) error {
	h := hcm{s: s, d: d, o: o}
	return h.all(h.pinned, h.traverse)
}

// Pin places what of an app is pinned to a node and not deployed yet. HCM does that too; before several apps are placed, it keeps one from taking the
// room of another one's pinned microservices. If one is refused, Pin undoes what it did and returns a *RefusedError.
func (s *State) Pin(d *Deployment, o Options) error {
	h := hcm{s: s, d: d, o: o}
	return h.all(h.pinned)
}

type hcm struct {
	s      *State
	d      *Deployment
	o      Options
	placed []int32
}

// all takes steps, or none.
func (h *hcm) all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			for _, i := range h.placed {
				h.s.lift(h.d, i)
			}
			return err
		}
	}
	return nil
}

// pinned places those that have no choice.
func (h *hcm) pinned() error {
	for i := range h.d.App.Services {
		if h.d.App.Services[i].Node != "" && h.d.at[i] == Nowhere {
			if err := h.place(int32(i), Nowhere); err != nil {
				return err
			}
		}
	}
	return nil
}

// traverse is MS_DAG_TRAVERSE.
func (h *hcm) traverse() error {
	for _, v := range h.d.App.breadthFirst() {
		if h.d.at[v] == Nowhere {
			if err := h.place(v, Nowhere); err != nil {
				return err
			}
		}
		for _, w := range h.d.App.callees[v] {
			if h.d.at[w] == Nowhere {
				if err := h.place(w, h.d.at[v]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// place is MS_PLACE, or find_first_fit where no caller's node is known.
func (h *hcm) place(v int32, caller NodeID) *RefusedError {
	q := h.s.ask(h.d, v)
	id, level := q.find(caller)
	if id == Nowhere && h.o.Overcommit {
		id = q.closest()
	}
	if h.o.Explain != nil || id == Nowhere {
		decision := q.explain(h.d.at, caller, id, level)
		decision.App = h.d.App.Name
		if id == Nowhere {
			return &RefusedError{h.d.App.Name, decision}
		}
		h.o.Explain(decision)
	}
	h.s.put(h.d, v, id)
	h.placed = append(h.placed, v)
	return nil
}

// find is the node that fits, and its level from the caller's node, 0 where there is no caller. The levels have every node, so once none of
// them has one that fits, neither has find_first_fit, to which Algorithm 1 then falls back (line 26).
func (q *query) find(caller NodeID) (id NodeID, number int) {
	if caller == Nowhere {
		return q.firstFit(), 0
	}
	if q.fits(caller) {
		return caller, 1
	}
	id = Nowhere
	q.s.topo.levels(caller, func(l *level) bool {
		id, number = q.bestFit(l), l.number
		return id == Nowhere
	})
	return id, number
}

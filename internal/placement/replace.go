package placement

// Replacement is what Replace did.
type Replacement struct {
	Moves []Moved
	Cost  int64 // of the moves: the sum of the microservices' move costs
	// Refused are microservices that fit nowhere. They were left on their nodes where these lack resources only, and otherwise run nowhere now.
	Refused []*RefusedError
	Broken  []Violation // that are left: of the refused, or of nodes that pinned microservices overload
}

// Moved is a microservice that is on another node than before.
type Moved struct {
	App, Service string
	From, To     NodeID // Nowhere where it ran nowhere
	Cost         int64
}

// Replace mends what is deployed after nodes went down (SetDown) or away (Move), loads changed (SetLoad) or apps were added. What meets its
// constraints stays where it is. It goes step by step: first those go that cannot be on their node at all, then, of an app's microservices on a
// server that have to be apart, those whose moves cost the least in sum, and then the same of each node that has too much to do. The least is
// exact for up to 12 microservices that take part, and for more of them where only their number is too high, or they cost the same and one
// resource is short. Otherwise those go that relieve most for their cost; they cost at most 1 + ln(n/r) times the least, where n is how
// many resources are short, their number among them, and r what the last of them relieved, as a share of what was short (Wolsey,
// Combinatorica 1982). Pinned ones stay, even if all others going is not enough.
//
// Those that go, and those that run nowhere, are placed as HCM does, seen from one that calls them, or that they call if none does. Explain is
// called for each, with why it left.
//
// Replace moves nothing else out of the way: what fits nowhere is in Refused, though another placement of everything might have room.
func (s *State) Replace(o Options) Replacement {
	apps := s.Apps()
	before := make([][]NodeID, len(apps))
	for k, d := range apps {
		before[k] = d.Nodes()
	}
	e := evictor{State: s}
	if o.Explain != nil {
		e.left = make(map[task]*Eviction)
	}
	e.misplaced(apps)
	for _, d := range apps {
		e.apart(d)
	}
	for id := range s.nodes {
		e.overload(NodeID(id))
	}
	var result Replacement
	for k, d := range apps {
		e.settle(d, before[k], o, &result)
	}
	result.Broken = s.Check()
	return result
}

// settle places what runs nowhere.
func (e *evictor) settle(d *Deployment, before []NodeID, o Options, result *Replacement) {
	s, h := e.State, hcm{s: e.State, d: d, o: o}
	for _, v := range d.App.breadthFirst() {
		if d.at[v] != Nowhere {
			continue
		}
		left := e.left[task{d, v}]
		if o.Explain != nil {
			h.o.Explain = func(why Decision) {
				why.Left = left
				o.Explain(why)
			}
		}
		if err := h.place(v, h.anchor(v)); err != nil {
			err.Decision.Left = left
			result.Refused = append(result.Refused, err)
			if id := before[v]; id != Nowhere && s.ask(d, v).allows(id) { // only resources give way
				s.put(d, v, id)
			}
			continue
		}
		if d.at[v] != before[v] {
			m := Moved{App: d.App.Name, Service: d.App.Services[v].Name, From: before[v], To: d.at[v]}
			if m.From != Nowhere {
				m.Cost = d.App.Services[v].moveCost()
			}
			result.Cost += m.Cost
			result.Moves = append(result.Moves, m)
		}
	}
}

// anchor is the node from which levels are counted.
func (h *hcm) anchor(v int32) NodeID {
	for _, near := range [][]int32{h.d.App.callers[v], h.d.App.callees[v]} {
		for _, i := range near {
			if h.d.at[i] != Nowhere {
				return h.d.at[i]
			}
		}
	}
	return Nowhere
}

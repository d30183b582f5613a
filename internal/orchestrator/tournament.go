package orchestrator

// serviceState is what is known of a microservice, and the winner of a group of microservices (see tournament).
type serviceState struct {
	average uint32 // of execution times, averageScale times the ns; 0: none yet; migrated: it has left the NIC
	cpu     uint16 // CPU use by the last report; 0: not a candidate
	winner  uint16
}

// tournament finds the highest CPU use of a NIC's microservices, as a tree of winners (Knuth, The Art of Computer Programming 3, section 5.4.1)
// with eight children a node: a group of level 0 is eight microservices, a group of level 1 eight groups of level 0, and so on up to
// the one that has all. The winner of a group of level i is kept with the i-th microservice of the group. The eight microservices of a
// group of level 0 are one cache line, and most reports change nothing beyond it. Of the same CPU use, the lower number wins.
type tournament []serviceState

const arity = 8

// places is how many elements a tournament has for so many microservices: whole groups, of which some never use the CPU.
func places(services int) int { return (services + arity - 1) / arity * arity }

// start sets the winners where nothing uses the CPU.
func (t tournament) start() {
	for level, span := 0, arity; len(t) > 0; level, span = level+1, span*arity {
		for first := 0; first < len(t); first += span {
			t[first+level].winner = uint16(first)
		}
		if span >= len(t) {
			return
		}
	}
}

// set changes a CPU use. What lost in its group, before and after, needs one comparison. A group is searched only if its winner uses less.
func (t tournament) set(s, cpu uint16) {
	before := t[s].cpu
	t[s].cpu = cpu
	if cpu == before {
		return
	}
	for level, span := 0, arity; ; level, span = level+1, span*arity {
		first := int(s) / span * span
		w := &t[first+level].winner
		switch {
		case *w != s && !t.beats(s, *w):
			return
		case *w != s:
			*w = s
		case cpu < before:
			*w = t.search(first, level, span)
		}
		if span >= len(t) {
			return
		}
	}
}

func (t tournament) beats(a, b uint16) bool {
	return t[a].cpu > t[b].cpu || t[a].cpu == t[b].cpu && a < b
}

// search finds the winner of a group among those of the groups below.
func (t tournament) search(first, level, span int) uint16 {
	step := span / arity
	best := uint16(first)
	for child := first; child < min(first+span, len(t)); child += step {
		w := uint16(child)
		if level > 0 {
			w = t[child+level-1].winner
		}
		if child == first || t.beats(w, best) {
			best = w
		}
	}
	return best
}

// best is the microservice with the highest CPU use, if any has used the CPU.
func (t tournament) best() (uint16, bool) {
	if len(t) == 0 {
		return 0, false
	}
	level := 0
	for span := arity; span < len(t); span *= arity {
		level++
	}
	w := t[level].winner
	return w, t[w].cpu > 0
}

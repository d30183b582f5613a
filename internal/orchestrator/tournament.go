package orchestrator

// tournament finds the highest CPU use of a NIC's microservices, as a tree of matches (a winner tree: Knuth, The Art of Computer Programming 3,
// section 5.4.1). The leaves n to 2n-1 are microservices 0 to n-1; match i > 0 is between the winners of 2i and 2i+1, and winners[i]
// has won it.
// Of the same CPU use, the lower number wins.
type tournament struct {
	cpu     []uint16
	winners []uint16 // [0] is not used
}

// start sets the winners where all CPU use is the same.
func (t tournament) start() {
	for i := len(t.cpu) - 1; i > 0; i-- {
		t.winners[i] = min(t.winner(2*i), t.winner(2*i+1))
	}
}

func (t tournament) winner(i int) uint16 {
	if i >= len(t.cpu) {
		return uint16(i - len(t.cpu))
	}
	return t.winners[i]
}

// set changes a CPU use, and plays the matches again whose result may change. A microservice among many wins few matches, and the loser of
// one that it did not win before ends it: this is one match for most reports, and at most the height of the tree.
func (t tournament) set(service, cpu uint16) {
	t.cpu[service] = cpu
	for i := (len(t.cpu) + int(service)) / 2; i > 0; i /= 2 {
		a, b := t.winner(2*i), t.winner(2*i+1)
		if t.cpu[b] > t.cpu[a] || t.cpu[b] == t.cpu[a] && b < a {
			a = b
		}
		if t.winners[i] == a && a != service {
			return
		}
		t.winners[i] = a
	}
}

// best is the microservice with the highest CPU use, if any has used the CPU.
func (t tournament) best() (uint16, bool) {
	switch len(t.cpu) {
	case 0:
		return 0, false
	case 1:
		return 0, t.cpu[0] > 0
	}
	return t.winners[1], t.cpu[t.winners[1]] > 0
}

// Package heartbeats measures how long the orchestrator of package orchestrator takes for the heartbeats of a simulated fleet of SmartNICs: the
// experiment of E3 (Liu, Peter, Krishnamurthy, Phothilimthana: E3: Energy-Efficient Microservices on SmartNIC-Accelerated
// Servers, ATC 2019), section 5.6, Figure 11.
//
// The heartbeats, and so all decisions, are the same for each seed. Times are those of the machine.
package heartbeats

import (
	"fmt"
	"math/rand/v2"

	"github.com/lambdanic/lambdanic/internal/orchestrator"
	"github.com/lambdanic/lambdanic/sim/random"
)

// Fleet is a number of servers, and what happens to their NICs.
type Fleet struct {
	Servers    int
	NICs       int     // of a server
	Lambdas    int     // on a NIC
	Overloaded float64 // the share of NICs that become overloaded, one half by host starvation, the other by slower lambdas
	Silent     float64 // the share of NICs that send nothing from some time on
	Intervals  int     // that are simulated
	Seed       uint64
}

// Bounds of a Fleet.
const (
	MinIntervals = orchestratorRow + 1 // one more than it takes to find an overload or a silent NIC
	MaxIntervals = 10_000
	MaxLambdas   = 250_000_000 // of all NICs, which take 2 GB

	orchestratorRow = 3 // of orchestrator.Default, for starvation and for silence
)

// AllNICs is the number of NICs of all servers.
func (f *Fleet) AllNICs() int { return f.Servers * f.NICs }

// Needed is how many heartbeats the fleet sends in a second.
func (f *Fleet) Needed() float64 { return float64(f.AllNICs()) / orchestrator.Interval.Seconds() }

func (f *Fleet) check() error {
	const most = orchestrator.MaxNIC + 1
	switch {
	case f.Servers < 1 || f.Servers > most:
		return fmt.Errorf("servers: %d is not between 1 and %d", f.Servers, most)
	case f.NICs < 1 || f.NICs > most || f.AllNICs() > most:
		return fmt.Errorf("%d servers with %d NICs each: it has to be 1 to %d NICs in all", f.Servers, f.NICs, most)
	case f.Lambdas < 1 || f.Lambdas > orchestrator.NoService:
		return fmt.Errorf("lambdas: %d is not between 1 and %d", f.Lambdas, orchestrator.NoService)
	case f.AllNICs()*f.Lambdas > MaxLambdas:
		return fmt.Errorf("%d NICs with %d lambdas each: at most %d lambdas in all fit into memory", f.AllNICs(), f.Lambdas, MaxLambdas)
	case !(f.Overloaded >= 0 && f.Silent >= 0 && f.Overloaded+f.Silent <= 1):
		return fmt.Errorf("shares of overloaded NICs, %g, and of silent ones, %g: both and their sum have to be between 0 and 1", f.Overloaded, f.Silent)
	case f.Intervals < MinIntervals || f.Intervals > MaxIntervals:
		return fmt.Errorf("intervals: %d is not between %d and %d", f.Intervals, MinIntervals, MaxIntervals)
	}
	return nil
}

// fate is what happens to a NIC.
type fate uint8

const (
	well fate = iota
	starves
	slows
	falls // silent
)

// source makes the heartbeats of a fleet.
type source struct {
	Fleet
	nics  []nic
	order []uint32 // in which heartbeats arrive: NICs do not start at the same time, but keep in step
	bytes []byte   // the heartbeats of an interval, one behind the other
}

type nic struct {
	fate  fate
	onset uint16 // the interval in which it begins
	moved uint16 // the lambda that has left for the host; NoService: none
}

func newSource(f Fleet) *source {
	n := f.AllNICs()
	s := &source{Fleet: f, nics: make([]nic, n), order: make([]uint32, n), bytes: make([]byte, 0, n*orchestrator.Size)}
	for i := range s.nics {
		s.nics[i].moved = orchestrator.NoService
		s.order[i] = uint32(i)
	}
	r := random.New(f.Seed, 0)
	r.Shuffle(n, func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
	overloaded := int(f.Overloaded * float64(n))
	for i, at := range r.Perm(n)[:overloaded+int(f.Silent*float64(n))] {
		s.nics[at].begin(r, i, overloaded, f.Intervals)
	}
	return s
}

// begin gives a NIC, the i-th that something happens to, a fate that shows before the end.
func (n *nic) begin(r *rand.Rand, i, overloaded, intervals int) {
	n.onset = uint16(1 + r.IntN(intervals-orchestratorRow+1))
	switch {
	case i >= overloaded:
		n.fate = falls
	case i%2 == 0:
		n.fate = starves
	default:
		n.fate = slows
	}
}

// lambda is what one takes of its NIC's CPU and how long it runs (ns), where nothing is wrong: from 1 to 100 µs.
func (s *source) lambda(nic uint32, service int) (cpu uint16, mean uint32) {
	x := random.Mix(random.Golden + (s.Seed ^ uint64(nic)<<20 ^ uint64(service)))
	share := max(1, orchestrator.AllCPU/s.Lambdas)
	return uint16(1 + x%uint64(share)), uint32(1000 + (x>>32)%99_000)
}

// interval makes the heartbeats of one, from 1.
func (s *source) interval(at int) ([]byte, error) {
	s.bytes = s.bytes[:0]
	for _, i := range s.order {
		n := &s.nics[i]
		begun := at >= int(n.onset)
		if n.fate == falls && begun {
			continue
		}
		h := s.report(i, at)
		if begun {
			n.show(&h)
		}
		s.bytes = s.bytes[:len(s.bytes)+orchestrator.Size]
		if err := h.Encode(s.bytes[len(s.bytes)-orchestrator.Size:]); err != nil {
			return nil, fmt.Errorf("NIC %d in interval %d: %w", i, at, err)
		}
	}
	return s.bytes, nil
}

// report is of a NIC with which nothing is wrong. Execution times vary by 5 % up and down.
func (s *source) report(i uint32, at int) orchestrator.Heartbeat {
	x := random.Mix(random.Golden + (^s.Seed ^ uint64(i)<<20 ^ uint64(at)))
	h := orchestrator.Heartbeat{NIC: i, Sequence: uint16(at), Queue: uint16(x % 8), Link: uint8(x>>8) % 100, Service: orchestrator.NoService}
	service := (at + int(i)) % s.Lambdas
	if service == int(s.nics[i].moved) {
		service = (service + 1) % s.Lambdas
	}
	if service == int(s.nics[i].moved) { // it was the only one
		return h
	}
	cpu, mean := s.lambda(i, service)
	h.Service, h.CPU, h.Time = uint16(service), cpu, mean*(950+uint32(x>>32)%101)/1000
	return h
}

// show changes a heartbeat by what is wrong with the NIC until a lambda has left.
func (n *nic) show(h *orchestrator.Heartbeat) {
	switch {
	case n.moved != orchestrator.NoService:
	case n.fate == starves:
		h.Queue, h.Link = 1000, 30
	case n.fate == slows:
		h.Time += h.Time / 2
	}
}

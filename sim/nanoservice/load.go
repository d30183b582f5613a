package nanoservice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/network"
	"github.com/lambdanic/lambdanic/sim/random"
)

// Load is requests of many clients to hosts that all offer the same service.
type Load struct {
	Hosts   int
	Machine Machine
	Wire    event.Time // from a NIC to another, whatever else is sent
	Service random.Time
	Flows   int // that the requests belong to; RSS has all of a flow served by one core
	// Utilisation is an open load: requests come by chance (Poisson), so many that they keep the cores busy for this share of the time.
	Utilisation float64
	// Clients is a closed load: so many clients, each of which sends its next request when it has the answer, and a while has passed.
	Clients  int
	Think    random.Time
	Requests int // after a tenth of as many, which are not counted
	// Network, where set, is what takes the messages instead of Wire. So many machines send the requests over it.
	Network        *network.Config
	Senders        int
	Request, Reply int // bytes
}

// Service is what became of a load.
type Service struct {
	// Latency is the time from a client's NIC and back to it, in ns, with three significant digits.
	Latency     *hdrhistogram.Histogram
	Throughput  float64 // replies a second
	Utilisation float64 // of the cores, without the time to get at messages, and to change between them
	// Overload is set where an open load is more than what was simulated can serve: by how many requests the queues grew for each that was
	// served. Then latency says only for how long was measured.
	Overload float64
}

// overloaded is the growth from which on queues are taken to grow for ever; it also has to be more than ten requests for each core.
const overloaded = 0.05

const longest = int64(event.Second / ns) // that Latency tells apart

func (l *Load) check() error {
	switch {
	case l.Hosts < 1 || l.Hosts > MaxHosts:
		return fmt.Errorf("hosts: %d is not between 1 and %d", l.Hosts, MaxHosts)
	case l.Flows < 1 || l.Flows > maxFlows:
		return fmt.Errorf("flows: %d is not between 1 and %d", l.Flows, maxFlows)
	case l.Requests < 1:
		return fmt.Errorf("requests: %d is not positive", l.Requests)
	case l.Wire < 0:
		return errors.New("wire: the time is negative")
	case l.Clients < 0 || l.Clients > most:
		return fmt.Errorf("clients: %d is not between 1 and %d", l.Clients, most)
	case l.Clients > 0 && l.Utilisation != 0:
		return errors.New("utilisation, clients: a load is either open or closed: set one of them")
	case l.Clients == 0 && !(l.Utilisation > 0 && l.Utilisation < 1):
		return fmt.Errorf("utilisation: %v is not between 0 and 1: with more, queues grow for ever", l.Utilisation)
	case l.Clients == 0 && l.Service.Mean() <= 0:
		return errors.New("service: it takes no time, so no load keeps the cores busy")
	case l.Network != nil && (l.Senders < 1 || l.Senders > MaxHosts):
		return fmt.Errorf("senders: %d is not between 1 and %d", l.Senders, MaxHosts)
	}
	if err := checkNetwork(l.Network, l.Request, l.Reply); err != nil {
		return err
	}
	if l.Hosts*l.Machine.Cores > mostCores {
		return fmt.Errorf("hosts, cores: %d × %d are more than %d cores", l.Hosts, l.Machine.Cores, mostCores)
	}
	return l.Machine.check()
}

func (m *Machine) check() error {
	switch {
	case m.Cores < 1 || m.Cores > maxCores:
		return fmt.Errorf("cores: %d is not between 1 and %d", m.Cores, maxCores)
	case min(m.Quantum, m.Switch) < 0:
		return errors.New("quantum, switch: a time is negative")
	case m.Quantum > 0 && m.Quantum < 10*ns:
		return fmt.Errorf("quantum: %v is less than 10 ns", m.Quantum.Duration())
	}
	return m.Interface.check()
}

const (
	maxCores  = 1024    // of a host
	mostCores = 1 << 22 // of all hosts; they take about 500 MiB
	maxFlows  = math.MaxInt32
)

// traffic is a load in progress. A message's a and b are the two halves of the time at which its client sent it.
type traffic struct {
	*Load
	service *rand.Rand // of its own, so that loads which differ in dispatch alone have the same requests
	gap     float64    // mean time between two requests of an open load
	warm    int        // requests until counting begins
	open    int        // requests on their way
	opened  int        // how many of them there were when counting began
	replies int
	from    event.Time // counting began
	spent   event.Time // by all cores, until then
	result  Service
}

// Run simulates the load. Each seed gives one result.
func (l *Load) Run(ctx context.Context, seed uint64) (Service, error) {
	if err := l.check(); err != nil {
		return Service{}, err
	}
	w := &traffic{Load: l, service: random.New(seed, 1), warm: l.Requests / 10}
	w.gap = float64(l.Service.Mean()) / l.Utilisation / float64(l.Hosts*l.Machine.Cores)
	w.result.Latency = hdrhistogram.New(1, longest, 3)
	s := newSim(&l.Machine, l.Hosts, w, seed)
	s.fabric = ideal(l.Wire)
	if l.Network != nil {
		s.fabric = newWired(s, *l.Network, l.Hosts+l.Senders)
	}
	if err := s.run(ctx); err != nil {
		return Service{}, err
	}
	elapsed := float64(s.events.Now() - w.from)
	w.result.Throughput = float64(l.Requests) / elapsed * float64(event.Second)
	w.result.Utilisation = float64(s.spent()-w.spent) / elapsed / float64(l.Hosts*l.Machine.Cores)
	grown := w.open - w.opened
	if share := float64(grown) / float64(l.Requests); l.Clients == 0 && share > overloaded && grown > 10*l.Hosts*l.Machine.Cores {
		w.result.Overload = share
	}
	return w.result, nil
}

// spent is what all cores have spent on messages.
func (s *sim) spent() (sum event.Time) {
	for i := range s.hosts {
		for c := range s.hosts[i].cores {
			sum += s.hosts[i].cores[c].spent
		}
	}
	return sum
}

// The kinds of messages.
const (
	request uint8 = iota
	reply
	due // no message: a client is to send its next request
)

func (w *traffic) begin(s *sim) {
	if w.Clients == 0 {
		s.later(0, message{kind: due})
		return
	}
	for client := range w.Clients {
		s.later(w.think(s), message{kind: due, flow: int32(client)})
	}
}

func (w *traffic) think(s *sim) event.Time {
	if w.Think == nil {
		return 0
	}
	return w.Think.Sample(s.r)
}

func (w *traffic) happened(s *sim, m message) (over bool) {
	if m.kind == reply {
		return w.answered(s, m)
	}
	now := s.events.Now()
	if w.Clients == 0 {
		m.flow = int32(s.r.IntN(w.Flows))
		s.later(now+event.Time(math.Round(s.r.ExpFloat64()*w.gap)), message{kind: due})
	}
	m.kind, m.a, m.b = request, int32(now>>32), int32(now)
	w.open++
	s.fabric.send(s, now, w.sender(m), int32(s.r.IntN(w.Hosts)), w.Request, m)
	return false
}

// sender is the machine of a flow's client.
func (w *traffic) sender(m message) int32 { return int32(w.Hosts) + m.flow%int32(max(w.Senders, 1)) }

func (w *traffic) cost(*sim, message) event.Time { return w.Service.Sample(w.service) }

func (w *traffic) done(s *sim, at int32, m message) (over bool) {
	m.kind = reply
	s.send(at, w.sender(m), w.Reply, m)
	return false
}

// answered is that a client has its reply.
func (w *traffic) answered(s *sim, m message) (over bool) {
	now := s.events.Now()
	w.open--
	if w.replies++; w.replies == w.warm+1 {
		w.from, w.spent, w.opened = now, s.spent(), w.open
	}
	if w.replies > w.warm {
		sent := event.Time(m.a)<<32 | event.Time(uint32(m.b))
		_ = w.result.Latency.RecordValue(min(int64((now-sent)/ns), longest))
	}
	if w.Clients > 0 {
		s.later(now+w.think(s), message{kind: due, flow: m.flow})
	}
	return w.replies == w.warm+w.Requests
}

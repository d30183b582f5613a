package cluster

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lambdanic/lambdanic/internal/placement"
	"github.com/lambdanic/lambdanic/sim/container"
	"github.com/lambdanic/lambdanic/sim/event"
	"github.com/lambdanic/lambdanic/sim/random"
)

// Load is requests that come by chance (Poisson).
type Load struct {
	Rate     float64 // requests/s
	Requests int     // that are measured, after a tenth as many that are not
	Fixed    bool    // a microservice always takes its mean time; else the time is exponential
	Seed     uint64
}

// Outcome is what became of a load.
type Outcome struct {
	Latency *hdrhistogram.Histogram // ns, from a client's NIC and back to it
	Waiting *hdrhistogram.Histogram // ns, for a core, of each call of a microservice
	// Arrived requests have been Answered or are InFlight at the end, those counted that were not measured.
	Arrived, Answered, InFlight int
	Throughput                  float64 // requests/s
	Nodes                       []NodeUse
	Power
}

// NodeUse is how a node was used.
type NodeUse struct {
	Name        string         `json:"name"`
	Utilisation float64        `json:"utilisation"`      // of its cores
	Active      float64        `json:"active_watts"`     // W
	Shards      map[string]int `json:"shards,omitempty"` // of each service, that it runs
}

const (
	// MaxRequests bounds a load.
	MaxRequests = 100_000_000
	longest     = int64(1000 * event.Second / event.Nanosecond)
	longestRun  = 1_000_000 // s; the clock has nine times as many
)

// Run simulates a load. Each seed gives one outcome. It fails if a node has more to do than it can, as its queue then has no end.
func (p *Placed) Run(ctx context.Context, l Load) (*Outcome, error) {
	peak, bottleneck := p.Peak()
	switch {
	case !(l.Rate > 0):
		return nil, fmt.Errorf("load: %v requests/s are not positive", l.Rate)
	case l.Rate >= peak:
		return nil, fmt.Errorf("load: %.6g requests/s are too many: node %s can serve less than %.6g", l.Rate, bottleneck, peak)
	case l.Requests < 1 || l.Requests > MaxRequests:
		return nil, fmt.Errorf("requests: %d is not between 1 and %d", l.Requests, MaxRequests)
	case float64(l.Requests+l.Requests/10+1)/l.Rate > longestRun:
		return nil, fmt.Errorf("load: %d at %.3g requests/s take longer than %d s: take fewer, or a higher load", l.Requests, l.Rate, longestRun)
	}
	s := p.simulation(&l)
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.outcome(), nil
}

// job is a request at an instance.
type job struct {
	request, instance int32
	at                event.Time // where it waits, or will be served
}

// happening is an event.
type happening struct {
	kind uint8
	job
}

// The kinds of events.
const (
	arrival uint8 = iota // of a request, from its client
	came                 // a request to an instance
	served               // by a core
	replied              // a message got to the client
)

type request struct {
	start event.Time
	open  int32 // messages and calls that are not done
}

// station is a node.
type station struct {
	idle  int
	queue container.Queue[job]
	busy  event.Time // sum of its cores' time
	spent float64    // J, active
}

type simulation struct {
	*Placed
	*Load
	events              event.Queue[happening]
	requests            container.Slab[request]
	stations            []station
	mean                []float64 // time of each instance, in ps
	energy              []float64 // of a request at each, in J, active
	gap                 float64
	arrivals, way, time *rand.Rand // of their own: placements see the same requests
	arrived, answered   int
	from                event.Time
	busy                []event.Time // of stations, until then
	spent               []float64
	latency, waiting    *hdrhistogram.Histogram
}

func (p *Placed) simulation(l *Load) *simulation {
	s := &simulation{
		Placed: p, Load: l, stations: make([]station, len(p.Cluster.nodes)), gap: float64(event.Second) / l.Rate,
		arrivals: random.New(l.Seed, 0), way: random.New(l.Seed, 1), time: random.New(l.Seed, 2),
		latency: hdrhistogram.New(1, longest, 3), waiting: hdrhistogram.New(1, longest, 3),
	}
	s.busy, s.spent = make([]event.Time, len(s.stations)), make([]float64, len(s.stations))
	for i := range s.stations {
		s.stations[i].idle = p.Cluster.nodes[i].Cores
	}
	for i := range p.instances {
		s.mean = append(s.mean, p.seconds(i)/p.node(i).Speed*float64(event.Second))
		s.energy = append(s.energy, p.joules(i))
	}
	return s
}

func (s *simulation) run(ctx context.Context) error {
	s.next()
	for n := 0; s.answered < s.Requests+s.warm(); n++ {
		if n%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		_, h := s.events.Pop() // the next arrival waits, if nothing else
		switch h.kind {
		case arrival:
			s.arrive()
		case came:
			s.come(h.job)
		case served:
			s.serve(h.job)
		case replied:
			s.close(h.request)
		}
	}
	return nil
}

func (s *simulation) warm() int { return s.Requests / 10 }

func (s *simulation) next() {
	s.events.Push(s.events.Now()+event.Time(math.Round(s.arrivals.ExpFloat64()*s.gap)), happening{kind: arrival})
}

func (s *simulation) arrive() {
	s.arrived++
	id := s.requests.Put(request{start: s.events.Now(), open: 1})
	s.call(id, placement.Nowhere, s.first)
	s.close(id)
	s.next()
}

// call sends a request on, and says whether it did.
func (s *simulation) call(id int32, from placement.NodeID, calls []call) (sent bool) {
	for i := range calls {
		c := &calls[i]
		if c.share < 1 && s.way.Float64() >= c.share {
			continue
		}
		to := c.to[0]
		if len(c.to) > 1 {
			to = c.to[s.way.IntN(len(c.to))]
		}
		s.requests.At(id).open++
		s.events.Push(s.events.Now()+s.Cluster.delay(from, s.Deployment.Node(int(to))), happening{came, job{request: id, instance: to}})
		sent = true
	}
	return sent
}

func (s *simulation) come(j job) {
	j.at = s.events.Now()
	st := &s.stations[s.Deployment.Node(int(j.instance))]
	if st.idle == 0 {
		st.queue.Push(j)
		return
	}
	st.idle--
	s.start(st, j)
}

func (s *simulation) start(st *station, j job) {
	_ = s.waiting.RecordValue(min(int64((s.events.Now()-j.at)/event.Nanosecond), longest))
	mean := s.mean[j.instance]
	if !s.Fixed {
		mean *= s.time.ExpFloat64()
	}
	takes := event.Time(math.Round(mean))
	st.busy += takes
	s.events.Push(s.events.Now()+takes, happening{served, j})
}

func (s *simulation) serve(j job) {
	id := s.Deployment.Node(int(j.instance))
	st, in := &s.stations[id], &s.instances[j.instance]
	st.spent += s.energy[j.instance]
	if st.queue.Len() > 0 {
		s.start(st, st.queue.Pop())
	} else {
		st.idle++
	}
	if s.call(j.request, id, in.calls) {
		s.close(j.request)
		return
	}
	s.events.Push(s.events.Now()+s.Cluster.delay(id, placement.Nowhere), happening{replied, j})
}

// close ends a message or a call; a request without any is answered.
func (s *simulation) close(id int32) {
	r := s.requests.At(id)
	if r.open--; r.open > 0 {
		return
	}
	took := s.events.Now() - s.requests.Take(id).start
	if s.answered++; s.answered > s.warm() {
		_ = s.latency.RecordValue(min(int64(took/event.Nanosecond), longest))
	}
	if s.answered == s.warm() {
		s.from = s.events.Now()
		for i := range s.stations {
			s.busy[i], s.spent[i] = s.stations[i].busy, s.stations[i].spent
		}
		s.waiting.Reset()
	}
}

func (s *simulation) outcome() *Outcome {
	o := &Outcome{Latency: s.latency, Waiting: s.waiting, Arrived: s.arrived, Answered: s.answered, InFlight: s.requests.Len()}
	seconds := float64(s.events.Now()-s.from) / float64(event.Second)
	o.Throughput = float64(s.answered-s.warm()) / seconds
	shards := s.shards()
	o.Wall = s.Cluster.total(func(y *System) float64 { return y.Idle })
	for i := range s.stations {
		n, st := &s.Cluster.nodes[i], &s.stations[i]
		u := NodeUse{Name: s.Cluster.topo.Node(placement.NodeID(i)).Name, Active: (st.spent - s.spent[i]) / seconds, Shards: shards[i]}
		u.Utilisation = min(1, float64(st.busy-s.busy[i])/float64(event.Second)/seconds/float64(n.Cores))
		system := s.Cluster.Servers[n.server]
		o.Wall += (system.Peak - system.Idle) * n.weight * u.Utilisation
		o.Active += u.Active
		o.Nodes = append(o.Nodes, u)
	}
	return o
}

// ActiveKRPJ is that of the load.
func (o *Outcome) ActiveKRPJ() float64 { return o.activeKRPJ(o.Throughput) }

// WallKRPJ is that of the load.
func (o *Outcome) WallKRPJ() float64 { return o.wallKRPJ(o.Throughput) }

package orchestrator

import (
	"fmt"
	"math"
	"time"
)

// Controller makes decisions for a fixed set of NICs. All memory is allocated by New. Times are those since the start of the caller's clock; one
// that is earlier than a time given before counts as that time.
type Controller struct {
	config   Config
	now      time.Duration
	nics     []nicState
	services []serviceState // of all NICs
	wheel    wheel
	counters Counters
	fetched  uint32 // makes the reads of fetch count
}

// averageScale is the reciprocal of the weight of a new execution time in the average, 1/8 as in TCP's round-trip times (RFC 6298). The average
// is kept times this, so that whole numbers lose nothing (Jacobson: Congestion Avoidance and Control, 1988, appendix A). The
// paper gives no weight.
const averageScale = 1 << (32 - timeBits)

const migrated = math.MaxUint32 // more than averageScale * MaxTime

// nicState is what is known of a NIC. Heartbeats come in any order of NICs, so it is small, for few cache misses.
type nicState struct {
	heard    time.Duration // time of the last heartbeat
	coolTill time.Duration // end of the cool-down
	first    uint32        // the place of its microservice 0 in Controller.services
	host     uint32
	next     uint32 // in the wheel
	services uint16
	sequence uint16
	moving   uint16 // the microservice that migrates; NoService: none
	row      uint8  // heartbeats in a row that looked like host starvation, up to Config.Row
	silent   bool
	resync   bool // the next heartbeat has any sequence number
}

// New makes a Controller for NICs with the numbers 0, 1, and so on, at time 0. A NIC that is not heard then becomes silent in its time.
func New(config Config, nics []NIC) (*Controller, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if len(nics) > MaxNIC+1 {
		return nil, fmt.Errorf("%d NICs: a heartbeat has room for %d: give each of several controllers a part", len(nics), MaxNIC+1)
	}
	c := &Controller{config: config, nics: make([]nicState, len(nics)), wheel: newWheel(config.Silent)}
	total := uint64(0)
	for i, n := range nics {
		if n.Services < 0 || n.Services > NoService {
			return nil, fmt.Errorf("NIC %d: %d microservices is not between 0 and %d", i, n.Services, NoService)
		}
		if total+uint64(places(n.Services)) > math.MaxUint32 {
			return nil, fmt.Errorf("room for more than %d microservices: give each of several controllers a part of the NICs", uint32(math.MaxUint32))
		}
		c.nics[i] = nicState{first: uint32(total), host: n.Host, services: uint16(n.Services), moving: NoService, resync: true}
		total += uint64(places(n.Services))
		c.wheel.add(c.nics, uint32(i))
	}
	c.services = make([]serviceState, total)
	for i := range c.nics {
		c.tournament(&c.nics[i]).start()
	}
	return c, nil
}

// Counters returns what was counted.
func (c *Controller) Counters() Counters { return c.counters }

// Observe takes in a heartbeat that arrived at a time, and makes at most one decision. It is one that Decode could have returned.
func (c *Controller) Observe(h Heartbeat, now time.Duration) (d Decision, ok bool) {
	if h.NIC >= uint32(len(c.nics)) {
		c.counters.UnknownNICs++
		return d, false
	}
	n := &c.nics[h.NIC]
	if !c.inOrder(n, h.Sequence) {
		return d, false
	}
	c.now = max(c.now, now)
	n.heard = c.now
	c.counters.Heartbeats++
	if n.silent {
		n.silent = false
		c.counters.Back++
		c.wheel.add(c.nics, h.NIC)
	}
	starved, overloaded := c.starved(n, &h), c.overloaded(n, &h)
	switch {
	case starved:
		return c.decide(n, h.NIC, Starvation)
	case overloaded:
		return c.decide(n, h.NIC, Overload)
	}
	return d, false
}

// inOrder tells whether a heartbeat is later than all before (serial numbers as in RFC 1982). A heartbeat that is not so is not counted as a
// sign of life: a NIC that starts again, with a sequence number that seems earlier, is thus found silent, and heard again after that.
func (c *Controller) inOrder(n *nicState, sequence uint16) bool {
	if !n.resync {
		switch ahead := int16(sequence - n.sequence); {
		case ahead == 0:
			c.counters.Duplicates++
			return false
		case ahead < 0:
			c.counters.Late++
			return false
		default:
			c.counters.Missing += uint64(ahead - 1)
		}
	}
	n.sequence, n.resync = sequence, false
	return true
}

// starved tells whether the host is, by this heartbeat and those before.
func (c *Controller) starved(n *nicState, h *Heartbeat) bool {
	if h.Queue < c.config.Queue || h.Link > c.config.Link {
		n.row = 0
		return false
	}
	n.row = min(n.row+1, c.config.Row)
	if n.row < c.config.Row {
		return false
	}
	c.counters.Starved++
	return true
}

// overloaded takes in the report on a microservice, and tells whether it is slower than it was.
func (c *Controller) overloaded(n *nicState, h *Heartbeat) bool {
	if h.Service >= n.services {
		if h.Service != NoService {
			c.counters.UnknownServices++
		}
		return false
	}
	services := c.tournament(n)
	average := &services[h.Service].average
	if *average == migrated {
		c.counters.Migrated++
		return false
	}
	services.set(h.Service, h.CPU)
	if h.Time == 0 {
		return false
	}
	before := *average
	if before == 0 {
		*average = averageScale * h.Time
		return false
	}
	*average += h.Time - before/averageScale // wraps around and back if the difference is negative
	if 100*averageScale*uint64(h.Time) <= uint64(100+c.config.Slower)*uint64(before) {
		return false
	}
	c.counters.Overloaded++
	return true
}

func (c *Controller) decide(n *nicState, nic uint32, reason Reason) (d Decision, ok bool) {
	if n.moving != NoService || c.now < n.coolTill {
		c.counters.Held++
		return d, false
	}
	victim, ok := c.tournament(n).best()
	if !ok {
		c.counters.NoCandidates++
		return d, false
	}
	n.moving = victim
	c.counters.Decisions++
	return Decision{NIC: nic, Host: n.host, Service: victim, Reason: reason}, true
}

func (c *Controller) tournament(n *nicState) tournament {
	return c.services[n.first:][:places(int(n.services))]
}

// Done ends the migration that a decision began. If it succeeded, the microservice is no candidate any more, until Place. The cool-down
// starts in either case. Whoever carries decisions out has to call this also if the NIC becomes silent meanwhile.
func (c *Controller) Done(d Decision, succeeded bool, now time.Duration) error {
	if d.NIC >= uint32(len(c.nics)) {
		return fmt.Errorf("NIC %d: there are %d, from 0", d.NIC, len(c.nics))
	}
	n := &c.nics[d.NIC]
	if d.Service == NoService || n.moving != d.Service {
		return fmt.Errorf("microservice %d of NIC %d does not migrate: report each decision once", d.Service, d.NIC)
	}
	c.now = max(c.now, now)
	n.moving, n.row, n.coolTill = NoService, 0, c.now+c.config.CoolDown
	if succeeded {
		services := c.tournament(n)
		services[d.Service].average = migrated
		services.set(d.Service, 0)
	}
	return nil
}

// Place tells that a microservice runs on a NIC, with the CPU use and the mean execution time (ns) that it had elsewhere, or 0 where they
// are not known. What was known of it on this NIC is forgotten.
func (c *Controller) Place(nic uint32, service, cpu uint16, mean uint32) error {
	if nic >= uint32(len(c.nics)) {
		return fmt.Errorf("NIC %d: there are %d, from 0", nic, len(c.nics))
	}
	n := &c.nics[nic]
	switch {
	case service >= n.services:
		return fmt.Errorf("microservice %d: NIC %d has %d, from 0", service, nic, n.services)
	case service == n.moving:
		return fmt.Errorf("microservice %d of NIC %d migrates: report that this is done first", service, nic)
	case cpu > AllCPU || mean > MaxTime:
		return fmt.Errorf("microservice %d of NIC %d: a CPU use of %d or an execution time of %d ns: at most %d and %d", service, nic, cpu, mean, AllCPU, MaxTime)
	}
	services := c.tournament(n)
	services[service].average = averageScale * mean
	services.set(service, cpu)
	return nil
}

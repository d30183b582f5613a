package orchestrator

import (
	"fmt"
	"time"
)

// Config has the thresholds. Default gives those of the paper, and where it gives none, ours.
type Config struct {
	// Host starvation: at least Queue packets wait and the throughput is at most Link percent of the link's rate, in Row heartbeats in
	// a row.
	Queue uint16
	Link  uint8
	Row   uint8
	// Microservice overload: an execution time of more than Slower percent above the average.
	Slower uint32
	// A NIC is silent after Silent intervals without a heartbeat.
	Silent int
	// CoolDown is how long a NIC is left alone after a migration is done, so that its effect is seen before the next.
	CoolDown time.Duration
}

// Default is Slower as in section 3.4. The paper has no figures for the others. A standing queue is one that persists for 100 ms, the
// interval of CoDel (Nichols, Jacobson: Controlling Queue Delay, 2012), which three heartbeats span.
func Default() Config {
	return Config{Queue: 64, Link: 80, Row: 3, Slower: 20, Silent: 3, CoolDown: 10 * Interval}
}

func (c *Config) check() error {
	switch {
	case c.Queue == 0:
		return fmt.Errorf("queue: 0 packets are no standing queue: take at least 1")
	case c.Link > wholeLink:
		return fmt.Errorf("link: %d %% is not between 0 and %d", c.Link, wholeLink)
	case c.Row == 0:
		return fmt.Errorf("row: 0 heartbeats show nothing: take at least 1")
	case c.Slower == 0 || c.Slower > maxSlower:
		return fmt.Errorf("slower: %d %% is not between 1 and %d", c.Slower, maxSlower)
	case c.Silent < 1 || c.Silent > maxSilent:
		return fmt.Errorf("silent: %d intervals is not between 1 and %d", c.Silent, maxSilent)
	case c.CoolDown < 0:
		return fmt.Errorf("cool-down: %v is negative", c.CoolDown)
	}
	return nil
}

const (
	maxSlower = 10_000
	maxSilent = 1_000
)

// NIC is one that a Controller looks after.
type NIC struct {
	Host     uint32 // where its microservices go
	Services int    // they have the numbers from 0 to Services-1
}

// Reason is why a microservice has to leave.
type Reason uint8

// Reasons.
const (
	Starvation Reason = iota + 1 // of the host
	Overload                     // of the NIC by its microservices
)

func (r Reason) String() string {
	switch r {
	case Starvation:
		return "host starvation"
	case Overload:
		return "microservice overload"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Decision is to migrate a microservice from a NIC to the NIC's host.
type Decision struct {
	NIC, Host uint32
	Service   uint16
	Reason    Reason
}

// Counters count what a Controller has seen since it was made.
type Counters struct {
	Heartbeats      uint64 // that were taken in
	UnknownNICs     uint64 // heartbeats of NICs that there are not
	Duplicates      uint64 // heartbeats with the sequence number of the last one
	Late            uint64 // heartbeats with an earlier sequence number
	Missing         uint64 // heartbeats that a gap in the sequence numbers shows; some may come late
	UnknownServices uint64 // reports of microservices that there are not; the rest of the heartbeat is taken in
	Migrated        uint64 // reports of microservices that have left the NIC; the rest of the heartbeat is taken in
	Starved         uint64 // heartbeats that showed host starvation
	Overloaded      uint64 // heartbeats that showed a microservice overload
	Held            uint64 // of these two, without a decision, since the last migration is not done, or was so lately
	NoCandidates    uint64 // of these two, without a decision, since no microservice of the NIC used its CPU
	Decisions       uint64
	Silent          uint64 // times that a NIC was found silent
	Back            uint64 // times that a silent NIC was heard again
}

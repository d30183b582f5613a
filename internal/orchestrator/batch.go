package orchestrator

import "time"

// batch is how many heartbeats are in work at a time. What they need of nicState and serviceState has room in the first-level cache.
const batch = 64

// ObserveAll is Observe for heartbeats that arrived together, in their order, and appends the decisions. With many NICs, it takes less than half
// the time: what most heartbeats wait for is memory, and here the CPU fetches it for many of them at once.
func (c *Controller) ObserveAll(heartbeats []Heartbeat, now time.Duration, decisions []Decision) []Decision {
	for len(heartbeats) > 0 {
		part := heartbeats[:min(batch, len(heartbeats))]
		heartbeats = heartbeats[len(part):]
		c.fetch(part)
		for i := range part {
			if d, ok := c.Observe(part[i], now); ok {
				decisions = append(decisions, d)
			}
		}
	}
	return decisions
}

// fetch reads what the heartbeats need, for the caches alone. In these short loops, no read waits for the one before.
func (c *Controller) fetch(part []Heartbeat) {
	var at [batch]uint32
	for i := range part {
		if h := &part[i]; h.NIC < uint32(len(c.nics)) {
			at[i] = c.nics[h.NIC].first + uint32(h.Service)
		}
	}
	for _, at := range at[:len(part)] {
		if at < uint32(len(c.services)) {
			c.fetched += c.services[at].average
		}
	}
}

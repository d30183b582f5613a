package orchestrator

import "time"

// wheel is a timer wheel (Varghese, Lauck: Hashed and Hierarchical Timing Wheels, SOSP 1987) of one slot an interval. A NIC that is not
// silent is in one slot, in a list through nicState.next. Heartbeats leave it there: when the slot's time comes, a NIC that was heard
// since moves on to the slot of its new deadline. So each NIC moves once a timeout, however many heartbeats it sends.
type wheel struct {
	timeout time.Duration
	slots   []uint32 // the first NIC of each, or end
	turned  int64    // the last slot that was looked at, not taken modulo their number
}

const end = ^uint32(0)

func newWheel(silent int) wheel {
	w := wheel{timeout: time.Duration(silent) * Interval, slots: make([]uint32, silent+1)}
	for i := range w.slots {
		w.slots[i] = end
	}
	return w
}

// deadline is the slot at whose time a NIC is silent, if it is not heard until then: the first that starts no earlier than the timeout.
func (w *wheel) deadline(n *nicState) int64 {
	return int64((n.heard + w.timeout + Interval - 1) / Interval)
}

func (w *wheel) add(nics []nicState, nic uint32) {
	slot := &w.slots[w.deadline(&nics[nic])%int64(len(w.slots))]
	nics[nic].next, *slot = *slot, nic
}

// Tick appends the NICs that have become silent since the last call, in no order that has a meaning, and returns the longer slice. A NIC is
// reported once until it is heard again, at the first multiple of Interval that is Config.Silent intervals after it was heard. Call this about
// once an Interval.
func (c *Controller) Tick(now time.Duration, silent []uint32) []uint32 {
	c.now = max(c.now, now)
	w := &c.wheel
	until := int64(c.now / Interval)
	slots := int64(len(w.slots))
	for at := max(w.turned, until-slots) + 1; at <= until; at++ { // after a long pause, each slot once
		nic := w.slots[at%slots]
		w.slots[at%slots] = end
		for nic != end {
			n := &c.nics[nic]
			next := n.next
			if w.deadline(n) > until {
				w.add(c.nics, nic)
			} else {
				n.silent, n.resync, n.row = true, true, 0
				silent = append(silent, nic)
				c.counters.Silent++
			}
			nic = next
		}
	}
	w.turned = max(w.turned, until)
	return silent
}

package nic

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// A superseded revision stays in its slot until nothing needs it: messages that it began, calls in flight, and pulls of the
// replies that it gave, which clients send within drainGrace.
const (
	drainGrace = time.Second
	drainPoll  = 100 * time.Millisecond
)

// drain frees a revision when it is no longer needed. If the daemon ends first, the next one drains it. From now on no peer can
// write to its memory.
func (n *NIC) drain(r *revision) {
	n.mu.Lock()
	for _, m := range n.modules {
		m.Superseded(&r.Revision)
	}
	n.mu.Unlock()
	n.drains.Add(1)
	go func() {
		defer n.drains.Done()
		tick := time.NewTicker(drainPoll)
		defer tick.Stop()
		began := time.Now()
		for {
			select {
			case <-n.closing:
				_ = r.close()
				return
			case <-tick.C:
			}
			if time.Since(began) < drainGrace {
				continue
			}
			if busy, err := n.needed(r, time.Since(began)); err == nil && !busy {
				break
			}
		}
		n.changing.Lock()
		defer n.changing.Unlock()
		if err := n.unload(r); err != nil {
			n.cfg.Log.Error("free a superseded revision", "slot", r.Slot, "error", err)
		}
	}()
}

// needed says whether anything still refers to a revision that was superseded so long ago.
func (n *NIC) needed(r *revision, age time.Duration) (bool, error) {
	n.changing.Lock()
	defer n.changing.Unlock()
	select {
	case <-n.closing:
		return true, nil
	default:
	}
	// Clients may keep messages alive for ever, but not the slot.
	if age > time.Duration(r.Record.MessageTimeoutMs)*time.Millisecond+drainGrace && age > n.cfg.drainLimit {
		return false, nil
	}
	for _, m := range n.modules {
		if needed, err := m.Needed(&r.Revision); needed || err != nil {
			return needed, err
		}
	}
	return false, nil
}

// unload frees everything that a revision does not share with others.
func (n *NIC) unload(r *revision) error {
	var errs []error
	if r.Slot != 0 {
		errs = append(errs, n.unlink(r))
		delete(n.loaded, r.Slot)
		if err := n.prog.LnPrograms.Delete(r.Slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("empty slot %d: %w", r.Slot, err))
		}
		n.cfg.reached("slot emptied")
		errs = append(errs, n.closeAccount(r)) // while the slot's record names its namespace
		errs = append(errs, n.prog.LnSlots.Put(r.Slot, &program.Slot{}))
		n.slots.Mark(r.Slot, 1, false)
		n.cfg.reached("slot cleared")
		errs = append(errs, load.Unpin(n.progPin(r.Slot)))
		n.cfg.reached("program unpinned")
		for _, s := range r.stateMaps() {
			if *s.layout != "" {
				errs = append(errs, load.Unpin(n.statePin(r.Slot, s)))
			}
		}
	}
	for _, m := range n.modules {
		m.Free(&r.Revision)
	}
	return errors.Join(append(errs, r.close())...)
}

// unlink takes a revision out of the chain by which packets find superseded revisions: those before it may still be needed.
func (n *NIC) unlink(r *revision) error {
	var errs []error
	for _, next := range n.loaded {
		if next.Record.Prev == r.Slot {
			errs = append(errs, n.supersedes(next, r.Record.Prev))
			n.cfg.reached("unlinked")
		}
	}
	return errors.Join(errs...)
}

// bound cuts off the end of r's chain that packets do not reach. Otherwise, once revisions in between have drained, packets would
// find messages there again that have meanwhile begun anew.
func (n *NIC) bound(r *revision) error {
	for range program.RootLnLimitLN_MAX_PREV {
		if r = n.loaded[r.Record.Prev]; r == nil {
			return nil
		}
	}
	return n.supersedes(r, 0)
}

// supersedes notes the slot of the revision before r.
func (n *NIC) supersedes(r *revision, prev uint32) error {
	r.Record.Prev = prev
	if err := n.prog.LnSlots.Put(r.Slot, &r.Record); err != nil {
		return fmt.Errorf("chain slot %d to slot %d: %w", r.Slot, prev, err)
	}
	return nil
}

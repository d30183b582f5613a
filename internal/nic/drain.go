package nic

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
)

// A superseded revision stays in its slot until nothing needs it: messages that it began, calls in flight, and pulls of the
// replies that it gave, which clients send within drainGrace.
const (
	drainGrace = time.Second
	drainPoll  = 100 * time.Millisecond
)

// drain frees a revision when it is no longer needed. If the daemon ends first, the next one takes it up again. Its memory is no
// peer's from now on.
func (n *NIC) drain(r *revision) {
	n.mu.Lock()
	n.rdma.revokeAll(r.slot)
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
			n.cfg.Log.Error("free a superseded revision", "slot", r.slot, "error", err)
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
	// Its clients may keep messages alive for ever, but not a slot of the NIC.
	if age > time.Duration(r.rec.MessageTimeoutMs)*time.Millisecond+drainGrace && age > n.cfg.drainLimit {
		return false, nil
	}
	if busy, err := n.messagesOf(r); busy || err != nil {
		return busy, err
	}
	if r.rec.ServiceCount == 0 {
		return false, nil
	}
	return n.callsOf(r)
}

func (n *NIC) messagesOf(r *revision) (bool, error) {
	now, err := monotonic()
	if err != nil {
		return false, err
	}
	for i := range r.rec.BucketCount {
		var b messagesLnBucket
		if err := n.prog.messages.LnMessages.LookupWithFlags(r.rec.BucketBase+i, &b, ebpf.LookupLock); err != nil {
			return false, fmt.Errorf("read message records: %w", err)
		}
		for _, m := range b.Way {
			if m.State != uint8(messagesLnMessageStateLN_MESSAGE_FREE) && m.Released == 0 && m.Slot == r.slot && now < m.ExpiresNs {
				return true, nil
			}
		}
	}
	return false, nil
}

func (n *NIC) callsOf(r *revision) (bool, error) {
	now, err := monotonic()
	if err != nil {
		return false, err
	}
	keys, values := make([]uint32, 4096), make([]callsLnCall, 4096)
	var cursor ebpf.MapBatchCursor
	for {
		got, err := n.prog.LnCalls.BatchLookup(&cursor, keys, values, nil)
		for _, c := range values[:got] {
			if c.State != 0 && c.Slot == r.slot && now < c.end()+1e9 {
				return true, nil
			}
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read call records: %w", err)
		}
	}
}

// end is when the last try of a call is over, in nanoseconds of the monotonic clock.
func (c callsLnCall) end() uint64 {
	return min(c.BeganNs+uint64(c.Retries+1)*uint64(c.TimeoutMs)*1e6, c.DeadlineNs)
}

// unload frees all that a revision holds, except what others share with it.
func (n *NIC) unload(r *revision) error {
	var errs []error
	if r.slot != 0 {
		errs = append(errs, n.unlink(r))
		delete(n.loaded, r.slot)
		if err := n.prog.LnPrograms.Delete(r.slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, fmt.Errorf("empty slot %d: %w", r.slot, err))
		}
		n.cfg.reached("slot emptied")
		errs = append(errs, n.prog.LnSlots.Put(r.slot, &rootLnSlot{}))
		n.slots.mark(r.slot, 1, false)
		n.cfg.reached("slot cleared")
		errs = append(errs, removePin(n.progPin(r.slot)))
		n.cfg.reached("program unpinned")
		for _, p := range r.parts() {
			if *p.layout != "" {
				errs = append(errs, removePin(n.partPin(r.slot, p)))
			}
		}
	}
	n.services.mark(r.rec.ServiceBase, r.rec.ServiceCount, false)
	shared := false
	for _, other := range n.loaded {
		shared = shared || other.rec.BucketCount > 0 && other.rec.BucketBase == r.rec.BucketBase
	}
	if !shared {
		n.buckets.mark(r.rec.BucketBase, r.rec.BucketCount, false)
	}
	return errors.Join(append(errs, r.close())...)
}

// unlink takes a revision out of the chain by which packets find those that were superseded: a revision before it may still be
// needed.
func (n *NIC) unlink(r *revision) error {
	var errs []error
	for _, next := range n.loaded {
		if next.rec.Prev == r.slot {
			errs = append(errs, n.supersedes(next, r.rec.Prev))
			n.cfg.reached("unlinked")
		}
	}
	return errors.Join(errs...)
}

// bound cuts off what no packet finds behind r, or messages there would be found again when those before them have drained,
// and meanwhile have begun anew.
func (n *NIC) bound(r *revision) error {
	for range rootLnLimitLN_MAX_PREV {
		if r = n.loaded[r.rec.Prev]; r == nil {
			return nil
		}
	}
	return n.supersedes(r, 0)
}

// supersedes notes in which slot the revision before r is.
func (n *NIC) supersedes(r *revision, prev uint32) error {
	r.rec.Prev = prev
	if err := n.prog.LnSlots.Put(r.slot, &r.rec); err != nil {
		return fmt.Errorf("chain slot %d to slot %d: %w", r.slot, prev, err)
	}
	return nil
}

func removePin(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove pin: %w", err)
	}
	return nil
}

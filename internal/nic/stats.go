package nic

import (
	"context"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// monotonic is the clock of bpf_ktime_get_coarse_ns().
func monotonic() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &ts); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(ts.Nano()), nil
}

func (n *NIC) clearStats(slot uint32) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return n.prog.LnSlotStats.Put(slot, make([]rootLnStats, cpus))
}

// Status reports every lambda on the NIC, by workload ID.
func (n *NIC) Status(context.Context) ([]backend.Status, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []backend.Status
	for workload, r := range *n.serving.Load() {
		s, err := n.slotStats(r.slot)
		if err != nil {
			return nil, err
		}
		all = append(all, backend.Status{Workload: workload, Revision: r.rec.Revision, Endpoint: n.Addr(), Stats: s})
	}
	slices.SortFunc(all, func(a, b backend.Status) int { return int(int64(a.Workload) - int64(b.Workload)) })
	return all, nil
}

func (n *NIC) slotStats(slot uint32) (s backend.Stats, err error) {
	var cpus []rootLnStats
	if err := n.prog.LnSlotStats.Lookup(slot, &cpus); err != nil {
		return s, fmt.Errorf("read the counters of slot %d: %w", slot, err)
	}
	for _, c := range cpus {
		s.Requests += c.Requests
		s.Replies += c.Replies
		s.Errors += c.Errors
		s.Drops += c.Drops
		s.Calls += c.Calls
		s.Faults += c.Faults
		s.Late += c.Late
		s.BytesIn += c.BytesIn
		s.BytesOut += c.BytesOut
		s.Samples += c.Samples
		s.SampledNS += c.SampledNs
		for i, v := range c.FaultsBy {
			s.FaultsBy[i] += v
		}
		for i, v := range c.Hist {
			s.Histogram[i] += v
		}
	}
	return s, nil
}

// Counters are what a NIC program counted for all lambdas together.
type Counters = backend.NICCounters

// Counters reads them. It waits for no deploy.
func (n *NIC) Counters() (c Counters, err error) {
	n.running.RLock()
	defer n.running.RUnlock()
	if n.closed {
		return c, fmt.Errorf("read the counters of NIC %s: it is closed", n.rec.Interface)
	}
	for i, v := range map[rootLnCounter]*uint64{
		rootLnCounterLN_COUNT_PASSED:  &c.Passed,
		rootLnCounterLN_COUNT_UNKNOWN: &c.Unknown, rootLnCounterLN_COUNT_MALFORMED: &c.Malformed,
		rootLnCounterLN_COUNT_CHECKSUM: &c.Checksum, rootLnCounterLN_COUNT_BUSY: &c.Busy,
		rootLnCounterLN_COUNT_STRAY: &c.Stray, rootLnCounterLN_COUNT_TIMEOUTS: &c.Timeouts,
		rootLnCounterLN_COUNT_ASTRAY: &c.Astray, rootLnCounterLN_COUNT_COPIES: &c.Copies,
		rootLnCounterLN_COUNT_FORGED: &c.Forged, rootLnCounterLN_COUNT_RETRIES: &c.Retries,
		rootLnCounterLN_COUNT_ALIEN: &c.Alien,
	} {
		var cpus []uint64
		if err := n.prog.LnCounters.Lookup(uint32(i), &cpus); err != nil {
			return c, fmt.Errorf("read the counters of NIC %s: %w", n.rec.Interface, err)
		}
		for _, x := range cpus {
			*v += x
		}
	}
	return c, nil
}

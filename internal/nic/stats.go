package nic

import (
	"context"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

func (n *NIC) clearStats(slot uint32) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return n.prog.LnSlotStats.Put(slot, make([]program.Stats, cpus))
}

// Status reports every lambda on the NIC, by workload ID.
func (n *NIC) Status(context.Context) ([]backend.Status, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []backend.Status
	for workload, r := range *n.serving.Load() {
		s, err := n.slotStats(r.Slot)
		if err != nil {
			return nil, err
		}
		all = append(all, backend.Status{Workload: workload, Revision: r.Record.Revision, Endpoint: n.Addr(), Stats: s})
	}
	slices.SortFunc(all, func(a, b backend.Status) int { return int(int64(a.Workload) - int64(b.Workload)) })
	return all, nil
}

func (n *NIC) slotStats(slot uint32) (s backend.Stats, err error) {
	var cpus []program.Stats
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
	for i, v := range map[program.RootLnCounter]*uint64{
		program.RootLnCounterLN_COUNT_PASSED:  &c.Passed,
		program.RootLnCounterLN_COUNT_UNKNOWN: &c.Unknown, program.RootLnCounterLN_COUNT_MALFORMED: &c.Malformed,
		program.RootLnCounterLN_COUNT_CHECKSUM: &c.Checksum, program.RootLnCounterLN_COUNT_BUSY: &c.Busy,
		program.RootLnCounterLN_COUNT_STRAY: &c.Stray, program.RootLnCounterLN_COUNT_TIMEOUTS: &c.Timeouts,
		program.RootLnCounterLN_COUNT_ASTRAY: &c.Astray, program.RootLnCounterLN_COUNT_COPIES: &c.Copies,
		program.RootLnCounterLN_COUNT_FORGED: &c.Forged, program.RootLnCounterLN_COUNT_RETRIES: &c.Retries,
		program.RootLnCounterLN_COUNT_ALIEN: &c.Alien,
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

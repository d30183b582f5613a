package nic

import (
	"context"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
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

// own are the counters that belong to no module.
var own = []module.Counter{
	{Index: program.RootLnCounterLN_COUNT_PASSED, Name: "passed", Help: "λ-RPC packets handed to the host."},
	{Index: program.RootLnCounterLN_COUNT_UNKNOWN, Name: "unknown", Help: "Packets for a workload that does not run here."},
	{Index: program.RootLnCounterLN_COUNT_MALFORMED, Name: "malformed", Help: "Packets that contradict themselves."},
	{Index: program.RootLnCounterLN_COUNT_CHECKSUM, Name: "checksum", Help: "Packets with a wrong UDP checksum."},
	{
		Index: program.RootLnCounterLN_COUNT_BUSY, Name: "busy",
		Help: "Packets refused or dropped for want of a free message or call record, or of room to wait.",
	},
	{Index: program.RootLnCounterLN_COUNT_TIMEOUTS, Name: "timeouts", Help: "External calls, and waits for the host, that expired."},
}

func (m modules) counters() []module.Counter {
	all := slices.Clone(own)
	for _, one := range m {
		all = append(all, one.Counters()...)
	}
	return all
}

// Counters reads the NIC program's counters, for all lambdas together. It does not wait for deploys.
func (n *NIC) Counters() ([]backend.Counter, error) {
	n.running.RLock()
	defer n.running.RUnlock()
	if n.closed {
		return nil, fmt.Errorf("read the counters of NIC %s: it is closed", n.rec.Interface)
	}
	var all []backend.Counter
	for _, c := range n.modules.counters() {
		var cpus []uint64
		if err := n.prog.LnCounters.Lookup(uint32(c.Index), &cpus); err != nil {
			return nil, fmt.Errorf("read the counters of NIC %s: %w", n.rec.Interface, err)
		}
		sum := backend.Counter{Name: c.Name, Help: c.Help}
		for _, x := range cpus {
			sum.Value += x
		}
		all = append(all, sum)
	}
	return all, nil
}

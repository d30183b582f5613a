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

// zeroStats sets the counters of a slot to zero.
func zeroStats(stats *ebpf.Map, slot uint32) error {
	if err := putOnCPUs(stats, slot, program.Stats{}); err != nil {
		return fmt.Errorf("clear the counters of slot %d: %w", slot, err)
	}
	return nil
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

func (n *NIC) slotStats(slot uint32) (backend.Stats, error) {
	s, err := n.accounts.read(slot)
	return reported(&s), err
}

func sumStats(cpus []program.Stats) (sum program.Stats) {
	for i := range cpus {
		addStats(&sum, &cpus[i])
	}
	return sum
}

func addStats(sum, s *program.Stats) {
	sum.Requests += s.Requests
	sum.Replies += s.Replies
	sum.Errors += s.Errors
	sum.Drops += s.Drops
	sum.Calls += s.Calls
	sum.Faults += s.Faults
	sum.Late += s.Late
	sum.OverQuota += s.OverQuota
	sum.OverShare += s.OverShare
	sum.OverBandwidth += s.OverBandwidth
	sum.BadTags += s.BadTags
	sum.Replayed += s.Replayed
	sum.BytesIn += s.BytesIn
	sum.BytesOut += s.BytesOut
	sum.Samples += s.Samples
	sum.SampledNs += s.SampledNs
	for i, v := range s.FaultsBy {
		sum.FaultsBy[i] += v
	}
	for i, v := range s.Hist {
		sum.Hist[i] += v
	}
}

// reported are counters as all backends report them.
func reported(s *program.Stats) backend.Stats {
	return backend.Stats{
		Requests: s.Requests, Replies: s.Replies, Errors: s.Errors, Drops: s.Drops, Calls: s.Calls, Faults: s.Faults, FaultsBy: s.FaultsBy,
		Late: s.Late, OverQuota: s.OverQuota, OverShare: s.OverShare, OverBandwidth: s.OverBandwidth, BadTags: s.BadTags, Replayed: s.Replayed,
		BytesIn: s.BytesIn, BytesOut: s.BytesOut, Samples: s.Samples, SampledNS: s.SampledNs, Histogram: s.Hist,
	}
}

// own are the counters that belong to no module.
var own = []module.Counter{
	{Index: program.RootLnCounterLN_COUNT_PASSED, Name: "passed", Help: "λ-RPC packets handed to the host."},
	{Index: program.RootLnCounterLN_COUNT_UNKNOWN, Name: "unknown", Help: "Packets for a workload that does not run here."},
	{Index: program.RootLnCounterLN_COUNT_MALFORMED, Name: "malformed", Help: "Packets that contradict themselves."},
	{
		Index: program.RootLnCounterLN_COUNT_NETWORK, Name: "network",
		Help: "Packets for a function that is not reached by the virtual network in which they came, or only by networks and they came in none.",
	},
	{Index: program.RootLnCounterLN_COUNT_CHECKSUM, Name: "checksum", Help: "Packets with a wrong UDP checksum."},
	{
		Index: program.RootLnCounterLN_COUNT_BUSY, Name: "busy",
		Help: "Packets refused or dropped for want of a free message or call record, or of room to wait, and requests refused because their namespace had its share of a busy CPU.",
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

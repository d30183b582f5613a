package nic

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/program"
)

const (
	second = 1e9  // nanoseconds, as all times here
	turns  = 1000 // in a second
	burst  = second / 10
)

// Limit has the NIC program keep all namespaces to their shares and quotas (backend.Limiting). It does not wait for deploys.
func (n *NIC) Limit(_ context.Context, limits backend.Limits) error {
	n.running.RLock()
	defer n.running.RUnlock()
	if n.closed {
		return nil
	}
	if err := n.limitAll(&limits); err != nil {
		return fmt.Errorf("limit what namespaces may do on %s: %w", n.rec.Interface, err)
	}
	return nil
}

func (n *NIC) limitAll(limits *backend.Limits) error {
	wanted := map[uint32]program.Quota{}
	sum := uint64(0)
	for _, q := range limits.Quotas {
		sum += q.ShareWeight()
	}
	for number, q := range limits.Quotas {
		p := quotaOf(&q)
		if limits.Budget > 0 {
			p.Pace = sum * uint64(program.RootLnShareLN_PACE) / q.ShareWeight()
		}
		wanted[index(number)] = p
	}
	budget := program.Budget{Share: uint64(math.Round(float64(limits.Budget) / second * float64(program.RootLnShareLN_BUDGET)))}
	if err := n.prog.LnBudgets.Put(uint32(0), &budget); err != nil {
		return err
	}
	for i := range uint32(api.MaxNamespaces) {
		if err := n.limit(i, wanted[i]); err != nil {
			return err
		}
	}
	return nil
}

// limit sets the quota of the namespace at an index.
func (n *NIC) limit(at uint32, q program.Quota) error {
	var old program.Quota
	if err := n.prog.LnQuotas.Lookup(at, &old); err != nil || old == q {
		return err
	}
	if err := n.prog.LnQuotas.Put(at, &q); err != nil || old.Rate == q.Rate {
		return err
	}
	// What the CPUs have left is of the old rate.
	return putOnCPUs(n.prog.LnAllowances, at, program.Allowance{})
}

// putOnCPUs writes a value for each CPU.
func putOnCPUs[T any](m *ebpf.Map, at uint32, value T) error {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return m.Put(at, slices.Repeat([]T{value}, cpus))
}

// quotaOf is a quota as the NIC program has it.
func quotaOf(q *api.Quota) (p program.Quota) {
	p.Rate[program.RootLnRateOfLN_RATE_REQUESTS] = rateOf(q.Requests)
	p.Rate[program.RootLnRateOfLN_RATE_TIME] = rateOf(q.NICTime)
	return p
}

// rateOf divides a second into turns of a millisecond, or longer ones of one unit each. Each turn gets a whole number of units, so its
// length follows from their number. The burst is a tenth of a second, or one turn if that is longer.
func rateOf(perSecond *uint64) program.Rate {
	switch {
	case perSecond == nil:
		return program.Rate{}
	case *perSecond == 0:
		return program.Rate{TurnNs: second, BurstNs: second}
	}
	units := max(1, *perSecond/turns)
	turn := uint64(math.Round(float64(units) / float64(*perSecond) * second))
	return program.Rate{Units: units, TurnNs: turn, BurstNs: max(burst, turn)}
}

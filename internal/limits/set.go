package limits

import (
	"math"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
)

const (
	second = 1e9  // nanoseconds, as all times here
	turns  = 1000 // in a second
	burst  = second / 10

	leastShare = 10_000 // a namespace has one such part at least: virtual times of less would be too far apart to compare (LN_AHEAD_NS)
)

// Set has all namespaces keep to their shares of the budget and to their quotas. These are those of all namespaces, by their numbers: one that is not among them
// has neither share nor quota.
func (l *Limits) Set(budget api.Budget, quotas map[uint32]api.Quota) error {
	wanted := map[uint32]Quota{}
	sum := uint64(0)
	for _, q := range quotas {
		sum += q.ShareWeight()
	}
	for number, q := range quotas {
		p := quotaOf(&q)
		if budget.Time > 0 {
			p.Pace[RawLnResourceLN_RESOURCE_TIME] = Pace(sum, q.ShareWeight())
		}
		if budget.Bandwidth > 0 {
			p.Pace[RawLnResourceLN_RESOURCE_LINKS] = Pace(sum, q.ShareWeight())
		}
		wanted[number%api.MaxNamespaces] = p
	}
	shared := BudgetOf(budget)
	if err := l.LnBudgets.Put(uint32(0), &shared); err != nil {
		return err
	}
	for i := range uint32(api.MaxNamespaces) {
		if err := l.limit(i, wanted[i]); err != nil {
			return err
		}
	}
	return nil
}

// BudgetOf is a budget as the programs have it.
func BudgetOf(budget api.Budget) Budget {
	b := Budget{Share: uint64(math.Round(float64(budget.Time) / second * float64(RawLnShareLN_BUDGET)))}
	if budget.Bandwidth > 0 {
		b.ByteNs = uint64(math.Round(8 * second / float64(budget.Bandwidth) * float64(RawLnShareLN_BYTE)))
	}
	return b
}

// Pace is how fast a namespace's virtual time passes (bpf/share.h), by its weight and the sum of all weights.
func Pace(sum, weight uint64) uint64 {
	return min(sum*uint64(RawLnShareLN_PACE)/weight, leastShare*uint64(RawLnShareLN_PACE))
}

// limit sets the quota of the namespace at an index.
func (l *Limits) limit(at uint32, q Quota) error {
	var old Quota
	if err := l.LnQuotas.Lookup(at, &old); err != nil || old == q {
		return err
	}
	if err := l.LnQuotas.Put(at, &q); err != nil || old.Rate == q.Rate {
		return err
	}
	// What the CPUs have left is of the old rate.
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	return l.LnAllowances.Put(at, make([]Allowance, cpus))
}

// quotaOf is a quota as the programs have it.
func quotaOf(q *api.Quota) (p Quota) {
	p.Rate[RawLnRateOfLN_RATE_REQUESTS] = rateOf(q.Requests)
	p.Rate[RawLnRateOfLN_RATE_TIME] = rateOf(q.NICTime)
	return p
}

// rateOf divides a second into turns of a millisecond, or longer ones of one unit each. Each turn gets a whole number of units, so its
// length follows from their number. The burst is a tenth of a second, or one turn if that is longer.
func rateOf(perSecond *uint64) Rate {
	switch {
	case perSecond == nil:
		return Rate{}
	case *perSecond == 0:
		return Rate{TurnNs: second, BurstNs: second}
	}
	units := max(1, *perSecond/turns)
	turn := uint64(math.Round(float64(units) / float64(*perSecond) * second))
	return Rate{Units: units, TurnNs: turn, BurstNs: max(burst, turn)}
}

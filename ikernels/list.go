package ikernels

import "fmt"

// Verdicts count messages by what an ikernel did with them.
type Verdicts struct{ Passed, Dropped, Replied uint64 }

func (k *Ikernel) verdicts() (sum Verdicts, err error) {
	var cores []echoIkCounts
	if err := k.coll.Maps["ik_counters"].Lookup(uint32(0), &cores); err != nil {
		return sum, fmt.Errorf("count the messages of ikernel %s: %w", k.name, err)
	}
	for _, c := range cores {
		sum.Passed += c.Verdicts[echoIkVerdictIK_PASS]
		sum.Dropped += c.Verdicts[echoIkVerdictIK_DROP]
		sum.Replied += c.Verdicts[echoIkVerdictIK_REPLY]
	}
	return sum, nil
}

package api

import (
	"errors"
	"time"
)

// BreakerSpec takes a lambda out of a target where too many requests fail: it goes on at the next target of its list. The zero value does not.
type BreakerSpec struct {
	FaultPercent int    `yaml:"fault_percent,omitempty" json:"fault_percent,omitempty"` // of a second's requests, with which a lambda is taken out
	Requests     uint64 `yaml:"requests,omitempty" json:"requests,omitempty"`           // of a second, at least
}

// Trips says whether a lambda is taken out that had so many requests and faults within a time, which counts as a second if it is shorter. A
// request of many packets may have several faults.
func (b BreakerSpec) Trips(requests, faults uint64, within time.Duration) bool {
	return b.FaultPercent > 0 && float64(requests) >= float64(b.Requests)*max(1, within.Seconds()) && faults*100 >= requests*uint64(b.FaultPercent)
}

func (b BreakerSpec) withDefaults() BreakerSpec {
	if b.FaultPercent != 0 && b.Requests == 0 {
		b.Requests = 20
	}
	return b
}

func (b BreakerSpec) validate(bad func(field, format string, args ...any)) {
	if b != (BreakerSpec{}) && (b.FaultPercent < 1 || b.FaultPercent > 100) {
		bad("breaker.fault_percent", "%d is not between 1 and 100", b.FaultPercent)
	}
}

// checkUsed refuses a breaker of a lambda that has one target in its spec. A deploy may name one target all the same.
func (b BreakerSpec) checkUsed(targets []Target) error {
	var errs fieldErrors
	if b != (BreakerSpec{}) && len(targets) == 1 {
		errs.bad("breaker", "there is no target after %q that the lambda could go to: name one in targets, or leave this out", targets[0])
	}
	return errors.Join(errs...)
}

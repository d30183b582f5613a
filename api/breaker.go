package api

// BreakerSpec takes a lambda out of a target where too many requests fail: it goes on at the next target of its list. The zero value does not.
type BreakerSpec struct {
	FaultPercent int    `yaml:"fault_percent,omitempty" json:"fault_percent,omitempty"` // of a second's requests, with which a lambda is taken out
	Requests     uint64 `yaml:"requests,omitempty" json:"requests,omitempty"`           // of a second, at least
}

// Trips says whether a lambda with so many requests and faults within a second is taken out. A request of many packets may have several faults.
func (b BreakerSpec) Trips(requests, faults uint64) bool {
	return b.FaultPercent > 0 && requests >= b.Requests && faults*100 >= requests*uint64(b.FaultPercent)
}

func (b BreakerSpec) withDefaults() BreakerSpec {
	if b.FaultPercent != 0 && b.Requests == 0 {
		b.Requests = 20
	}
	return b
}

func (b BreakerSpec) validate(targets []Target, bad func(field, format string, args ...any)) {
	if b == (BreakerSpec{}) {
		return
	}
	if b.FaultPercent < 1 || b.FaultPercent > 100 {
		bad("breaker.fault_percent", "%d is not between 1 and 100", b.FaultPercent)
	}
	if len(targets) < 2 {
		bad("breaker", "there is no target after %q that the lambda could go to: name one in targets, or leave this out", targets[0])
	}
}

package limits

import (
	"math"
	"testing"

	"github.com/lambdanic/lambdanic/api"
)

// Rates are as exact as anybody would measure them, and each turn brings something.
func TestRateOf(t *testing.T) {
	for _, per := range []uint64{1, 2, 3, 7, 10, 99, 999, 1000, 1001, 1999, 2000, 12_345, 999_999, 1_000_000, 1e9, 1e12, math.MaxUint32, math.MaxUint64} {
		r := rateOf(&per)
		got := float64(r.Units) / float64(r.TurnNs) * second
		if r.Units == 0 || r.TurnNs == 0 || math.Abs(got/float64(per)-1) > 1e-6 || r.BurstNs < r.TurnNs || r.BurstNs < burst {
			t.Errorf("%d per second is %+v, which is %f", per, r, got)
		}
	}
	if r := rateOf(nil); r != (Rate{}) {
		t.Errorf("no limit is %+v", r)
	}
	if r := rateOf(new(uint64)); r.Units != 0 || r.TurnNs == 0 {
		t.Errorf("nothing at all is %+v", r)
	}
	if api.MaxNamespaces != RawLnLimitLN_MAX_NAMESPACES {
		t.Errorf("api has %d namespaces, the NIC program %d", api.MaxNamespaces, RawLnLimitLN_MAX_NAMESPACES)
	}
}

// A namespace's virtual time passes by its weight, and never so fast that two of little weight cannot be compared.
func TestPace(t *testing.T) {
	for _, c := range []struct{ sum, weight, want uint64 }{
		{100, 100, uint64(RawLnShareLN_PACE)},
		{300, 100, 3 * uint64(RawLnShareLN_PACE)},
		{10_000, 1, 10_000 * uint64(RawLnShareLN_PACE)},
		{40_960_000, 1, 10_000 * uint64(RawLnShareLN_PACE)},
	} {
		if got := Pace(c.sum, c.weight); got != c.want {
			t.Errorf("%d of %d: %d, want %d", c.weight, c.sum, got, c.want)
		}
	}
}

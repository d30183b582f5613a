package metering

import (
	"math"
	"testing"

	"github.com/cilium/ebpf/asm"
)

// The estimate of integers is what they are charged, in the time of a unit. Helpers usually take a third of what is counted.
func TestEstimate(t *testing.T) {
	p := collection(nested(300, 20))
	g, err := analyse(p, p.Programs["lambda"])
	if err != nil {
		t.Fatal(err)
	}
	if err := g.price(); err != nil {
		t.Fatal(err)
	}
	bounds, err := Check(p)
	if err != nil {
		t.Fatal(err)
	}
	e, err := EstimateTime(p, "lambda")
	if err != nil {
		t.Fatal(err)
	}
	bound := bounds["lambda"]
	if len(e.Loops) != 2 || !near(e.Once, float64(bound.Once)*unitNs) {
		t.Errorf("estimate %+v of %+v", e, bound)
	}
	for i, l := range bound.Loops {
		if !near(e.Loops[i], float64(l.Cost)*unitNs) {
			t.Errorf("a loop that is charged %d is estimated at %v ns", l.Cost, e.Loops[i])
		}
	}
	if again, err := Check(p); err != nil || again["lambda"].Loops[0] != bound.Loops[0] {
		t.Errorf("estimating changed the charges: %+v (%v)", again, err)
	}

	p = collection(join(one(asm.FnKtimeGetNs.Call()), leave("out")))
	if bounds, err = Check(p); err != nil {
		t.Fatal(err)
	}
	e, err = EstimateTime(p, "lambda")
	rest := 2.0 // instructions behind the call
	if want := ((float64(bounds["lambda"].Once)-rest)/3 + rest) * unitNs; err != nil || !near(e.Once, want) {
		t.Errorf("a call is estimated at %v ns, want %v (%v)", e.Once, want, err)
	}
	if _, err := EstimateTime(p, "none"); err == nil {
		t.Error("estimated a program that there is none of")
	}
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

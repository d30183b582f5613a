package timeline

import (
	"math"
	"slices"
	"testing"
	"time"
)

// Fairness is told by what is known of it.
func TestTold(t *testing.T) {
	if got := Deviation([]float64{500, 300, 200}, []float64{0.4, 0.4, 0.2}); math.Abs(got-10) > 1e-9 {
		t.Errorf("50:30:20 is %f points off 40:40:20", got)
	}
	for want, values := range map[float64][]float64{1: {3, 3, 3}, 0.5: {1, 0}, 0.9: {1, 2}} {
		if got := Jain(values); math.Abs(got-want) > 1e-9 {
			t.Errorf("the index of %v is %f, want %f", values, got, want)
		}
	}
	if got := Parts([]float64{30, 20}, []float64{60, 80}); !slices.Equal(got, []float64{0.5, 0.25}) {
		t.Errorf("30 of 60 and 20 of 80 are %v", got)
	}
	line := Timeline{load: Load{Sharers: make([]string, 2), Samples: 40}}
	counts := []float64{0, 0}
	for i := range 41 {
		line.add(slices.Clone(counts), time.Unix(0, 0).Add(time.Duration(i)*sampleTime))
		counts[0] += 10
		if i >= 12 { // from then on, both get the same
			counts[1] += 10
		}
	}
	equal := []float64{0.5, 0.5}
	if got := line.Settling(0, equal); got != 170 {
		t.Errorf("settled after %f ms, want 120 and a window of 50", got)
	}
	if got := line.Rates(0); got[0] != 1000 || got[1] != 1000 {
		t.Errorf("the rates are %v", got)
	}
}

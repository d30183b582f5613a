package random

import (
	"math"
	"testing"

	"github.com/lambdanic/lambdanic/sim/event"
)

// What is drawn has the mean that the distribution says, and the share of it that its definition says is at most some value.
func TestTimes(t *testing.T) {
	quantiles, err := NewQuantiles(Quantile{0, 100}, Quantile{0.5, 1000}, Quantile{0.9, 1000}, Quantile{1, 5000})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		d     Time
		value event.Time
		below float64
	}{
		"fixed":       {Fixed(500), 500, 1},
		"exponential": {Exponential(1e6), 1e6, 1 - 1/math.E},
		"bimodal":     {Bimodal{Short: 1000, Long: 100000, P: 0.1}, 1000, 0.9},
		"quantiles":   {quantiles, 1000, 0.9},
		"samples":     {Samples{1, 2, 3, 4}, 3, 0.75},
	} {
		r, sum, below := New(1, 0), 0.0, 0
		const draws = 200000
		for range draws {
			x := c.d.Sample(r)
			if x < 0 {
				t.Fatalf("%s: drew %d", name, x)
			}
			sum += float64(x)
			if x <= c.value {
				below++
			}
		}
		// Four standard errors: of a share, and of a mean whose deviation is at most three times itself.
		if share := float64(below) / draws; math.Abs(share-c.below) > 4*math.Sqrt(c.below*(1-c.below)/draws)+1e-9 {
			t.Errorf("%s: a share of %.4f is at most %d, want %.4f", name, share, c.value, c.below)
		}
		if mean, want := sum/draws, float64(c.d.Mean()); math.Abs(mean/want-1) > 4*3/math.Sqrt(draws)+1/want {
			t.Errorf("%s: the mean is %.1f, want %.1f", name, mean, want)
		}
	}
}

func TestHistogram(t *testing.T) {
	h, err := NewHistogram(0, 3, 0, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, r := map[int]int{}, New(1, 0)
	const draws = 40000
	for range draws {
		got[h.Sample(r)]++
	}
	if len(got) != 2 || math.Abs(float64(got[2])/draws-0.75) > 0.01 || got[2]+got[5] != draws {
		t.Errorf("drew %v", got)
	}
}

func TestBadDistributions(t *testing.T) {
	for name, q := range map[string][]Quantile{
		"none": nil, "no least": {{0.1, 1}, {1, 2}}, "no greatest": {{0, 1}, {0.9, 2}}, "one": {{0, 1}},
		"negative": {{0, -1}, {1, 2}}, "descending": {{0, 5}, {1, 2}}, "twice": {{0, 1}, {0.5, 2}, {0.5, 3}, {1, 4}}, "NaN": {{0, 1}, {math.NaN(), 2}, {1, 3}},
	} {
		if _, err := NewQuantiles(q...); err == nil {
			t.Errorf("quantiles: %s: taken", name)
		}
	}
	for name, counts := range map[string][]int{"none": nil, "zeros": {0, 0}, "negative": {1, -1}, "too many": {math.MaxInt, 1}} {
		if _, err := NewHistogram(counts...); err == nil {
			t.Errorf("histogram: %s: taken", name)
		}
	}
}

// The generator SplitMix64, seeded with 1234567, begins with these numbers (S. Vigna: splitmix64.c; rosettacode.org lists them).
func TestMix(t *testing.T) {
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if state += Golden; Mix(state) != want {
			t.Errorf("number %d is %d, want %d", i, Mix(state), want)
		}
	}
}

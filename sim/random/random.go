// Package random has the distributions that simulators draw from, reads them from what a user writes (ParseTime, ParseCount), and has the
// hash by which programs spread things evenly (Mix). To draw takes constant time; from a Histogram or Quantiles, O(log of its size).
package random

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/interp"

	"github.com/lambdanic/lambdanic/sim/event"
)

// New returns a generator. Each stream of a seed is independent of the others: what draws from one of them draws the same, whatever is drawn
// from others. Those of neighbouring seeds have nothing in common: PCG, seeded with 0, 1, 2 and so on, begins with numbers that
// are alike, which moved the median of 300 runs by 2 %.
func New(seed, stream uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], stream)
	return rand.New(rand.NewChaCha8(key))
}

// Golden is 2^64 divided by the golden ratio. Its multiples are spread evenly over all numbers.
const Golden uint64 = 0x9e3779b97f4a7c15

// Mix is a hash: the finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators, OOPSLA 2014). Each
// number has one of its own, and that of 0 is 0.
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Time is a distribution of times. What it gives is never negative.
type Time interface {
	Sample(r *rand.Rand) event.Time
	Mean() event.Time
}

// Count is a distribution of numbers, from 1 up.
type Count interface {
	Sample(r *rand.Rand) int
}

// Fixed is always one time.
type Fixed event.Time

// Sample implements Time.
func (f Fixed) Sample(*rand.Rand) event.Time { return event.Time(f) }

// Mean implements Time.
func (f Fixed) Mean() event.Time { return event.Time(f) }

// Exponential has that mean.
type Exponential event.Time

// Sample implements Time.
func (e Exponential) Sample(r *rand.Rand) event.Time { return event.Time(r.ExpFloat64() * float64(e)) }

// Mean implements Time.
func (e Exponential) Mean() event.Time { return event.Time(e) }

// Bimodal is Long with probability P, and else Short.
type Bimodal struct {
	Short, Long event.Time
	P           float64
}

// Sample implements Time.
func (b Bimodal) Sample(r *rand.Rand) event.Time {
	if r.Float64() < b.P {
		return b.Long
	}
	return b.Short
}

// Mean implements Time.
func (b Bimodal) Mean() event.Time {
	return event.Time(float64(b.Short)*(1-b.P) + float64(b.Long)*b.P)
}

// Quantile is a point of a distribution: a share P of all is at most Value.
type Quantile struct {
	P     float64
	Value event.Time
}

// Quantiles is a distribution that is known by some of its quantiles. Between them, it follows the smooth curve through them that never
// turns (F. N. Fritsch, J. Butland: A method for constructing local monotone piecewise cubic interpolants, 1984).
type Quantiles struct{ curve interp.FritschButland }

// NewQuantiles takes quantiles that ascend from the least value (P = 0) to the greatest (P = 1).
func NewQuantiles(q ...Quantile) (*Quantiles, error) {
	if len(q) < 2 || q[0].P != 0 || q[len(q)-1].P != 1 {
		return nil, errors.New("quantiles have to begin with the least value (0) and end with the greatest (1)")
	}
	var x, y []float64
	for i := range q {
		if q[i].Value < 0 || i > 0 && (q[i].P <= q[i-1].P || q[i].Value < q[i-1].Value) || math.IsNaN(q[i].P) {
			return nil, fmt.Errorf("quantile %d: they have to ascend, and none may be negative", i+1)
		}
		x, y = append(x, q[i].P), append(y, float64(q[i].Value))
	}
	var out Quantiles
	if err := out.curve.Fit(x, y); err != nil {
		return nil, fmt.Errorf("fit a curve through the quantiles: %w", err)
	}
	return &out, nil
}

// Sample implements Time.
func (q *Quantiles) Sample(r *rand.Rand) event.Time { return event.Time(q.curve.Predict(r.Float64())) }

// Mean implements Time.
func (q *Quantiles) Mean() event.Time {
	const steps = 10000
	var sum float64
	for i := range steps {
		sum += q.curve.Predict((float64(i) + 0.5) / steps)
	}
	return event.Time(sum / steps)
}

// Samples draws from measured times, each as likely as the others.
type Samples []event.Time

// Sample implements Time.
func (s Samples) Sample(r *rand.Rand) event.Time { return s[r.IntN(len(s))] }

// Mean implements Time.
func (s Samples) Mean() event.Time {
	var sum float64
	for _, t := range s {
		sum += float64(t)
	}
	return event.Time(sum / float64(len(s)))
}

// ParseCount reads a number from 1 to MaxCount.
func ParseCount(s string) (Count, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > MaxCount {
		return nil, fmt.Errorf("%q is not a number from 1 to %d", s, MaxCount)
	}
	return Number(n), nil
}

// MaxCount bounds ParseCount.
const MaxCount = 1_000_000

// Number is always one number.
type Number int

// Sample implements Count.
func (n Number) Sample(*rand.Rand) int { return int(n) }

// Histogram draws 1+i with a likelihood of [i] out of the sum of all.
type Histogram struct{ below []int }

// NewHistogram takes how often 1, 2, 3 and so on were counted.
func NewHistogram(counts ...int) (*Histogram, error) {
	h, sum := &Histogram{}, 0
	for i, c := range counts {
		if c < 0 || c > math.MaxInt-sum {
			return nil, fmt.Errorf("count %d: %d is negative or too much", i+1, c)
		}
		sum += c
		h.below = append(h.below, sum)
	}
	if sum == 0 {
		return nil, errors.New("a histogram needs a count that is not 0")
	}
	return h, nil
}

// Sample implements Count.
func (h *Histogram) Sample(r *rand.Rand) int {
	// The first number whose sum is above what was drawn.
	i, _ := slices.BinarySearch(h.below, 1+r.IntN(h.below[len(h.below)-1]))
	return i + 1
}

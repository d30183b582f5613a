package gen

import (
	"context"
	"math"
)

// Curve is a server's behaviour under rising load.
type Curve struct {
	Points []Point
	// Open is the point with the highest delivered rate among those with at most the tolerated loss; the open-loop rate.
	Open Point
	// Most is the point with the highest delivered rate, whatever was lost.
	Most Point
}

// Point is one load and its result. Rate 0 is a load as fast as the generator goes.
type Point struct {
	Asked float64
	Result
}

const (
	// MaxLoss is the share of requests that an open-loop rate may lose.
	MaxLoss = 0.01

	precision = 1.02 // the search ends when the rate is known to this factor
	maxSteps  = 16
	attempts  = 2 // a rate is too high when it loses too much this often: other work on the machine loses packets as well
)

// Search finds the highest rate that a server sustains. At first it offers as much as it can: a server that answers all of
// that is faster than the generator. Otherwise the rate lies below, and is found by bisection on a logarithmic scale. run
// offers one load.
func Search(ctx context.Context, run func(ctx context.Context, rate float64) (Result, error)) (Curve, error) {
	var c Curve
	ok, err := c.try(ctx, run, 0, 1)
	if ok || err != nil {
		return c, err
	}
	// A flooded server may deliver less than a busy one, so what it delivered is not a bound, but a good
	// place to begin.
	low, high := 0.0, c.Most.OfferedRate()
	rate := 0.9 * c.Most.Rate()
	for range maxSteps {
		if rate <= low || rate >= high {
			rate = middle(low, high)
		}
		ok, err := c.try(ctx, run, rate, attempts)
		if err != nil {
			return c, err
		}
		if ok {
			low = rate
		} else {
			high = rate
		}
		if high < low*precision || high < 1 {
			break
		}
		rate = middle(low, high)
	}
	return c, nil
}

func middle(low, high float64) float64 {
	if low == 0 {
		return high / 2
	}
	return math.Sqrt(low * high)
}

// try offers one rate and says whether the server sustains it.
func (c *Curve) try(ctx context.Context, run func(ctx context.Context, rate float64) (Result, error), rate float64, attempts int) (bool, error) {
	for range attempts {
		r, err := run(ctx, rate)
		if err != nil {
			return false, err
		}
		c.add(Point{Asked: rate, Result: r})
		if r.Sent > 0 && r.Loss() <= MaxLoss {
			return true, nil
		}
	}
	return false, nil
}

func (c *Curve) add(p Point) {
	c.Points = append(c.Points, p)
	if p.Rate() > c.Most.Rate() || len(c.Points) == 1 {
		c.Most = p
	}
	if p.Sent > 0 && p.Loss() <= MaxLoss && p.Rate() > c.Open.Rate() {
		c.Open = p
	}
}

// Refine measures again what Search found: it offers as much as it can, and if that is too much, rates around the known
// one, from above, until the server sustains one.
func Refine(ctx context.Context, run func(ctx context.Context, rate float64) (Result, error), known float64) (Curve, error) {
	var c Curve
	if known == 0 {
		return Search(ctx, run)
	}
	for _, share := range []float64{0, 1.06, 1.03, 1, 0.97, 0.94, 0.9, 0.85, 0.75, 0.5, 0.25} {
		ok, err := c.try(ctx, run, known*share, 1)
		if ok || err != nil {
			return c, err
		}
	}
	return c, nil
}

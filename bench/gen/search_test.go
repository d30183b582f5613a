package gen

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

// server is a model of one: it answers up to its capacity, and when flooded only a share of that.
type server struct{ capacity, flooded, generator float64 }

func (s server) run(_ context.Context, rate float64) (Result, error) {
	if rate == 0 || rate > s.generator {
		rate = s.generator
	}
	delivered := min(rate, s.capacity)
	if rate > 2*s.capacity {
		delivered = s.capacity * s.flooded
	}
	return Result{Sent: uint64(rate), Delivered: uint64(delivered), Elapsed: time.Second}, nil
}

func TestSearchFindsTheCapacity(t *testing.T) {
	for _, s := range []server{
		{capacity: 200e3, flooded: 1, generator: 4e6},
		{capacity: 200e3, flooded: 0.05, generator: 4e6},
		{capacity: 3.9e6, flooded: 1, generator: 4e6},
		{capacity: 9e6, flooded: 1, generator: 4e6},
		{capacity: 5e3, flooded: 0, generator: 4e6},
	} {
		c, err := Search(context.Background(), s.run)
		if err != nil {
			t.Fatal(err)
		}
		want := min(s.capacity, s.generator)
		if got := c.Open.Rate(); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%+v: got %.0f after %d loads, want %.0f within 3 %%", s, got, len(c.Points), want)
		}
		if c.Open.Loss() > MaxLoss || c.Most.Rate() < c.Open.Rate() {
			t.Errorf("%+v: open %+v, most %+v", s, c.Open, c.Most)
		}
	}
}

func TestSearchGivesUpOnADeadServer(t *testing.T) {
	c, err := Search(context.Background(), server{generator: 1e6}.run)
	if err != nil || c.Open.Rate() != 0 {
		t.Errorf("got %+v, %v; want no rate", c.Open, err)
	}
}

func TestSearchReportsErrors(t *testing.T) {
	broken := errors.New("broken")
	_, err := Search(context.Background(), func(context.Context, float64) (Result, error) { return Result{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

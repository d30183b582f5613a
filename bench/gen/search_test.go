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
	return Result{Sent: uint64(rate), Expected: uint64(rate), Delivered: uint64(delivered), Elapsed: time.Second}, nil
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

func TestRefineFollowsTheServer(t *testing.T) {
	for _, capacity := range []float64{190e3, 200e3, 210e3} {
		c, err := Refine(context.Background(), server{capacity: capacity, flooded: 0.05, generator: 4e6}.run, 200e3)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Open.Rate(); got < capacity*0.94 || got > capacity {
			t.Errorf("known to sustain 200000/s, now %.0f: got %.0f", capacity, got)
		}
	}
	c, err := Refine(context.Background(), server{capacity: 9e6, generator: 4e6}.run, 200e3)
	if err != nil || c.Open.Rate() != 4e6 {
		t.Errorf("a server faster than the generator: got %.0f, %v", c.Open.Rate(), err)
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

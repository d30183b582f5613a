package event

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// Events leave by time and, at the same time, in the order in which they came: as a stable sort has them.
func TestOrder(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		var q Queue[int]
		type pushed struct {
			at Time
			n  int
		}
		var waiting []pushed
		horizon := int64(1) << r.IntN(45)
		for n := range 2000 {
			at := q.Now() + Time(r.Int64N(horizon))
			q.Push(at, n)
			waiting = append(waiting, pushed{at, n})
			for r.IntN(3) == 0 && q.Len() > 0 {
				slices.SortStableFunc(waiting, func(a, b pushed) int { return cmp.Compare(a.at, b.at) })
				at, n := q.Pop()
				if n == nil || (pushed{at, *n}) != waiting[0] || q.Now() != at {
					t.Fatalf("seed %d: event %v at %d, want %+v", seed, n, at, waiting[0])
				}
				waiting = waiting[1:]
			}
			if q.Len() != len(waiting) {
				t.Fatalf("seed %d: %d events wait, want %d", seed, q.Len(), len(waiting))
			}
		}
	}
}

func TestPast(t *testing.T) {
	var q Queue[int]
	if _, e := q.Pop(); e != nil {
		t.Error("an empty queue gave an event")
	}
	q.Push(5, 0)
	q.Pop()
	defer func() {
		if recover() == nil {
			t.Error("an event was taken whose time has passed")
		}
	}()
	q.Push(4, 0)
}

func BenchmarkQueue(b *testing.B) {
	var q Queue[uint64]
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		q.Push(Time(r.IntN(3_000_000)), 0)
	}
	for b.Loop() {
		at, _ := q.Pop()
		q.Push(at+Time(r.IntN(3_000_000)), 0)
	}
}

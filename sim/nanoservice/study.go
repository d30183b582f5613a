package nanoservice

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/lambdanic/lambdanic/sim/event"
)

// Study runs trees many times.
type Study struct {
	Trees []Case
	Runs  int    // of each tree, at least 1
	Seed  uint64 // of the first run; the others take those that follow
	// Progress, where set, is told after each run how many of all are done. Several goroutines call it.
	Progress func(done, all int)
}

// Case is a tree under a name.
type Case struct {
	Name string
	Tree
}

// Outcome is what became of the runs of a tree.
type Outcome struct {
	Case
	Finish      []event.Time // ascending
	Utilisation float64      // the mean
	Messages    uint64       // of all runs
}

// Percentile is the time within which that share of the runs, in per cent, finished: the nearest rank.
func (o *Outcome) Percentile(p float64) event.Time {
	rank := int(math.Ceil(p / 100 * float64(len(o.Finish))))
	return o.Finish[min(max(rank, 1), len(o.Finish))-1]
}

// Mean is that of the times.
func (o *Outcome) Mean() event.Time {
	var sum float64
	for _, f := range o.Finish {
		sum += float64(f)
	}
	return event.Time(sum / float64(len(o.Finish)))
}

// Run runs them on all CPUs. What comes out does not depend on how many these are.
func (s *Study) Run(ctx context.Context) ([]Outcome, error) {
	if s.Runs < 1 || len(s.Trees) == 0 {
		return nil, fmt.Errorf("%d runs of %d trees: there is nothing to do: take at least one of both", s.Runs, len(s.Trees))
	}
	for _, c := range s.Trees {
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	results := make([]Result, len(s.Trees)*s.Runs)
	err := each(ctx, len(results), s.Progress, func(ctx context.Context, i int) (err error) {
		c := &s.Trees[i/s.Runs]
		if results[i], err = c.Tree.Run(ctx, s.Seed+uint64(i%s.Runs)); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for i, c := range s.Trees {
		o := Outcome{Case: c}
		for _, r := range results[i*s.Runs : (i+1)*s.Runs] {
			o.Finish = append(o.Finish, r.Finish)
			o.Utilisation += r.Utilisation / float64(s.Runs)
			o.Messages += r.Messages
		}
		slices.Sort(o.Finish)
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// each does n runs on all CPUs, until one fails.
func each(ctx context.Context, n int, progress func(done, all int), run func(ctx context.Context, i int) error) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	var done atomic.Int64
	for i := range n {
		if inner.Err() != nil {
			break
		}
		group.Go(func() error {
			if err := run(inner, i); err != nil {
				return err
			}
			if d := done.Add(1); progress != nil {
				progress(int(d), n)
			}
			return nil
		})
	}
	err := group.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted after %d of %d runs: %w", done.Load(), n, ctx.Err())
	}
	return err
}

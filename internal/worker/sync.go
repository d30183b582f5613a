package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

const (
	removeLimit = time.Minute      // for a target to end a workload, with all tries
	reportLimit = 10 * time.Minute // for the store to take a report
)

// Sync brings the node into line with its placements in the store, from whatever state an earlier daemon left, and then returns. A function
// that cannot be brought back does not hold up the others: its status says why. Sync does not load a candidate: the manager that
// proposed it no longer waits. A candidate that already serves is ready, as clients have seen its answers.
func (w *Worker) Sync(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	if err := w.limit(ctx); err != nil {
		return err
	}
	list, _, err := w.cfg.Store.Assignments(ctx, w.cfg.Node)
	if err != nil {
		return err
	}
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	if err := w.bring(ctx, list, running, w.look); err != nil {
		return err
	}
	if err := w.removeStrays(ctx, list, running); err != nil {
		return err
	}
	select {
	case <-w.synced:
	default:
		close(w.synced)
	}
	return nil
}

// Start has the worker follow the node's placements, from the first Sync until stop is called, which waits for what is
// being done.
func (w *Worker) Start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var following sync.WaitGroup
	following.Go(func() { w.followOn(ctx) })
	return func() {
		cancel()
		following.Wait()
	}
}

// followOn follows the placements, and begins anew when the watch breaks.
func (w *Worker) followOn(ctx context.Context) {
	select {
	case <-w.synced:
	case <-ctx.Done():
		return
	}
	pause := soon()
	for {
		err := w.follow(ctx, pause.Reset)
		if ctx.Err() != nil {
			return
		}
		w.cfg.Log.Warn("lost sight of what the store places on this node: asking again", "node", w.cfg.Node, "error", err)
		select {
		case <-time.After(pause.NextBackOff()):
		case <-ctx.Done():
			return
		}
	}
}

// soon is the backoff of everything that is tried again.
func soon() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, 10*time.Second
	return b
}

func (w *Worker) follow(ctx context.Context, begun func()) error {
	list, revision, err := w.cfg.Store.Assignments(ctx, w.cfg.Node)
	if err != nil {
		return err
	}
	if err := w.answer(ctx, list); err != nil {
		return err
	}
	begun()
	return w.cfg.Store.Watch(ctx, w.cfg.Node, revision, func(indexes []uint32) error {
		var list []store.Assignment
		for _, i := range indexes {
			a, err := w.cfg.Store.Assignment(ctx, w.cfg.Node, i)
			if err != nil {
				return err
			}
			list = append(list, *a)
		}
		return w.answer(ctx, list)
	})
}

// answer handles those of a list that have no answer yet.
func (w *Worker) answer(ctx context.Context, list []store.Assignment) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	list = slices.DeleteFunc(list, func(a store.Assignment) bool { return a.Answered() })
	if len(list) == 0 {
		return nil
	}
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	return w.bring(ctx, list, running, w.try)
}

// try makes candidates serve beside the wanted revisions, those of one program together.
func (w *Worker) try(ctx context.Context, ps []*store.Placement, running backend.Running) map[uint32]error {
	failed := make(map[uint32]error)
	together := make(map[uint32]bool)
	for _, group := range programs(ps, running) {
		err := w.deployFused(ctx, group)
		for _, p := range group {
			failed[p.Function.Workload], together[p.Function.Workload] = err, true
		}
	}
	for _, p := range ps {
		if !together[p.Function.Workload] {
			failed[p.Function.Workload] = w.deploy(ctx, p, running)
		}
	}
	return failed
}

var errCutShort = errors.New("its deploy was cut short")

// look says which candidates serve. Serving on one of several NICs is enough: the others follow once it is wanted.
func (w *Worker) look(_ context.Context, ps []*store.Placement, running backend.Running) map[uint32]error {
	failed := make(map[uint32]error)
	for _, p := range ps {
		f := p.Function
		if s, ok := running[p.Target][f.Workload]; !ok || s.Revision != f.Revision && s.Newest != f.Revision {
			failed[f.Workload] = errCutShort
		}
	}
	return failed
}

// keep makes what is wanted serve. A fused program that cannot be brought back whole is tried function by function.
func (w *Worker) keep(ctx context.Context, ps []*store.Placement, running backend.Running) (map[uint32]error, error) {
	if groups := programs(ps, running); len(groups) > 0 {
		for _, group := range groups {
			_ = w.deployFused(ctx, group)
		}
		var err error
		if running, err = w.Running(ctx); err != nil {
			return nil, err
		}
	}
	failed := make(map[uint32]error)
	for _, p := range ps {
		failed[p.Function.Workload] = w.deploy(ctx, p, running)
	}
	return failed, nil
}

// bring brings the node into line with a list of assignments, and reports. While a workload has a candidate, nothing of it ends.
func (w *Worker) bring(ctx context.Context, list []store.Assignment, running backend.Running,
	try func(context.Context, []*store.Placement, backend.Running) map[uint32]error,
) error {
	var tried, wanted []*store.Placement
	for _, a := range list {
		switch {
		case a.Tried != nil:
			tried = append(tried, a.Tried)
		case a.Wanted != nil:
			wanted = append(wanted, a.Wanted)
		}
	}
	refused := try(ctx, tried, running)
	failed, err := w.keep(ctx, wanted, running)
	if err != nil {
		return err
	}
	for i := range list {
		a := &list[i]
		switch {
		case a.Tried != nil:
			err = w.report(ctx, a, a.Tried, refused[a.Workload])
		case a.Wanted != nil:
			err = w.report(ctx, a, a.Wanted, errors.Join(failed[a.Workload], w.remove(ctx, a.Workload, a.Wanted.Target)))
		default:
			err = w.end(ctx, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// report reports the outcome of a placement, unless the store has it.
func (w *Worker) report(ctx context.Context, a *store.Assignment, p *store.Placement, failed error) error {
	st := store.Status{Workload: a.Workload, Revision: p.Function.Revision, Target: p.Target, State: api.StateReady, Seen: a.Changed}
	if failed != nil {
		st.State, st.Reason = api.StateError, failed.Error()
	}
	if a.Answered() && st == *a.Status {
		return nil
	}
	return w.tell(ctx, st)
}

func (w *Worker) tell(ctx context.Context, st store.Status) error {
	return store.Insist(ctx, reportLimit, func(ctx context.Context) error { return w.cfg.Store.Report(ctx, w.cfg.Node, st) })
}

// end ends a workload that has no placement here.
func (w *Worker) end(ctx context.Context, a *store.Assignment) error {
	if err := w.remove(ctx, a.Workload, ""); err != nil {
		return w.tell(ctx, store.Status{Workload: a.Workload, State: api.StateError, Reason: err.Error()})
	}
	return store.Insist(ctx, reportLimit, func(ctx context.Context) error { return w.cfg.Store.Ended(ctx, w.cfg.Node, a.Workload) })
}

// remove ends a workload on all targets but one, which may be "".
func (w *Worker) remove(ctx context.Context, workload uint32, keep api.Target) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	var errs []error
	for _, p := range w.Places() {
		if p.Backend == nil || p.Target == keep {
			continue
		}
		once := func() (struct{}, error) { return struct{}{}, p.Backend.Remove(ctx, workload) }
		if _, err := backoff.Retry(ctx, once, backoff.WithBackOff(soon()), backoff.WithMaxTries(3)); err != nil {
			errs = append(errs, fmt.Errorf("remove workload %#x from %s: %w", workload, p.Target, err))
		}
	}
	return errors.Join(errs...)
}

// removeStrays ends what runs here without a placement.
func (w *Worker) removeStrays(ctx context.Context, list []store.Assignment, running backend.Running) error {
	placed := make(map[uint32]bool, len(list)) // bring has handled these
	for _, a := range list {
		placed[a.Workload] = true
	}
	var errs []error
	for _, workloads := range running {
		for id := range workloads {
			if !placed[id] {
				errs = append(errs, w.remove(ctx, id, ""))
			}
		}
	}
	return errors.Join(errs...)
}

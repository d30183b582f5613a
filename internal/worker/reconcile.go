package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// Reconcile brings the node to what the store wants, from whatever state an earlier daemon died in. A function that cannot
// be brought back does not keep the others from it: its status says why. Each function stays on the target that it is
// recorded on; where this node does not have that one, log gets a warning.
//
// A deploy that was cut short is completed where a backend already serves its candidate, for clients have seen its answers,
// and else forgotten.
func (w *Worker) Reconcile(ctx context.Context, st *store.Store, log *slog.Logger) error {
	if err := w.settleCandidates(ctx, st); err != nil {
		return err
	}
	functions, err := st.List(ctx, "")
	if err != nil {
		return err
	}
	if err := w.restoreFused(ctx, functions); err != nil {
		return err
	}
	for i := range functions {
		if err := w.restore(ctx, st, &functions[i], log); err != nil {
			return err
		}
	}
	if err := w.removeStrays(ctx, functions); err != nil {
		return err
	}
	draining, err := st.Draining(ctx)
	if err != nil {
		return err
	}
	for _, id := range draining {
		if err := st.Free(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

func (w *Worker) settleCandidates(ctx context.Context, st *store.Store) error {
	candidates, err := st.Candidates(ctx)
	if err != nil {
		return err
	}
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	for i := range candidates {
		c := &candidates[i]
		for _, t := range c.Spec.Targets {
			// On one of several NICs is enough: clients have seen its answers, and restore brings it to the others.
			if s, ok := running[t][c.Workload]; ok && (s.Revision == c.Revision || s.Newest == c.Revision) {
				c.Target = t
				break
			}
		}
		if c.Target == "" {
			err = st.Abandon(ctx, c)
		} else {
			err = st.Promote(ctx, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restore applies f where it does not run. A target that refused it last time is asked again: the node may have changed.
func (w *Worker) restore(ctx context.Context, st *store.Store, f *store.Function, log *slog.Logger) error {
	status := store.Status{Revision: f.Revision, State: api.StateReady}
	home := f.Target
	err := w.Keep(ctx, f)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("restore %s: %w", f.Key(), ctx.Err())
	case err != nil:
		status.State, status.Reason = api.StateError, err.Error()
	case f.Target != home:
		f.Fused = nil
		log.Warn("moved a function, without its kept state, from a target that is not available here",
			"function", f.Key(), "from", home, "to", f.Target, "reason", f.Refused[0].Reason)
		if err := st.Update(ctx, f); err != nil && !errors.Is(err, store.ErrSuperseded) {
			return err
		}
	}
	return st.PutStatus(ctx, f.Namespace, f.Name, status)
}

// removeStrays ends what nobody wants: workloads of removed functions, and those that moved to another target.
func (w *Worker) removeStrays(ctx context.Context, functions []store.Function) error {
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	type at struct {
		target   api.Target
		workload uint32
	}
	wanted := make(map[at]bool, len(functions))
	for _, f := range functions {
		wanted[at{f.Target, f.Workload}] = true
	}
	var errs []error
	for _, p := range w.Places() {
		for id := range running[p.Target] {
			if wanted[at{p.Target, id}] {
				continue
			}
			if err := p.Backend.Remove(ctx, id); err != nil {
				errs = append(errs, fmt.Errorf("remove stray workload %#x from %s: %w", id, p.Target, err))
			}
		}
	}
	return errors.Join(errs...)
}

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// Recover brings the node to what the store wants, whatever an earlier daemon left behind.
func (m *Manager) Recover(ctx context.Context) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if err := m.recover(ctx); err != nil {
		return err
	}
	m.collect(ctx)
	return nil
}

// recover completes or forgets what was cut short, and has this node run what is wanted.
func (m *Manager) recover(ctx context.Context) error {
	failed := m.settleAll(ctx)
	if failed != nil {
		failed = fmt.Errorf("recover: %w", failed)
	}
	// Whatever the nodes do, requests go by what the store says.
	return errors.Join(failed, m.loadRoutes(ctx))
}

func (m *Manager) loadRoutes(ctx context.Context) error {
	all, err := m.Store.List(ctx, "")
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.routes)
	for _, f := range all {
		m.routes[f.Key()] = &f
	}
	return nil
}

func (m *Manager) settleAll(ctx context.Context) error {
	if err := m.Store.Place(ctx, m.Nodes); err != nil {
		return err
	}
	if err := m.Node.Sync(ctx); err != nil {
		return err
	}
	candidates, err := m.Store.Candidates(ctx)
	if err != nil {
		return err
	}
	for i := range candidates {
		if err := m.settleCandidate(ctx, &candidates[i]); err != nil {
			return err
		}
	}
	if len(candidates) > 0 {
		if err := m.Node.Sync(ctx); err != nil {
			return err
		}
	}
	if err := m.moveHomeless(ctx); err != nil {
		return err
	}
	draining, err := m.Store.Draining(ctx)
	if err != nil {
		return err
	}
	for _, id := range draining {
		if err := m.release(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// settleCandidate completes a deploy that was cut short where a node already serves its candidate, for clients have seen its answers, and
// else forgets it. In the first case the other nodes follow.
func (m *Manager) settleCandidate(ctx context.Context, c *store.Function) error {
	waiting, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	statuses, err := m.Store.Await(waiting, c)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(statuses, func(s store.Status) bool { return s.State == api.StateReady && s.Revision == c.Revision }) {
		return m.Store.Promote(ctx, c)
	}
	return m.Store.Abandon(ctx, "", c)
}

// moveHomeless moves functions whose target this node does not have to the first other one of their lists that takes them.
func (m *Manager) moveHomeless(ctx context.Context) error {
	all, err := m.Store.List(ctx, "")
	if err != nil {
		return err
	}
	for i := range all {
		f := &all[i]
		missing := m.Node.Available(f.Target)
		others := slices.DeleteFunc(slices.Clone(f.Spec.Targets), func(t api.Target) bool { return t == f.Target })
		if missing == nil || len(others) == 0 {
			continue
		}
		if err := m.move(ctx, f, others, missing); err != nil {
			return fmt.Errorf("move %s: %w", f.Key(), err)
		}
	}
	return nil
}

// move has a function served by another target. Where none takes it, its status says why.
func (m *Manager) move(ctx context.Context, f *store.Function, others []api.Target, missing error) error {
	home := f.Target
	moved := *f
	moved.Target, moved.Fused = others[0], nil
	if err := m.Store.Move(ctx, &moved); err != nil {
		return err
	}
	p := &plan{targets: others, refused: []api.Refusal{{Target: home, Reason: missing.Error()}}}
	err := m.try(ctx, []*store.Function{&moved}, p)
	switch {
	case errors.Is(err, ErrRefused):
		return m.Store.Abandon(ctx, err.Error(), &moved)
	case err != nil:
		return err
	}
	m.Log.Warn("moved a function, without its kept state, from a target that is not available here",
		"function", f.Key(), "from", home, "to", moved.Target, "reason", missing)
	return m.Store.Promote(ctx, &moved)
}

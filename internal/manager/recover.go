package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// Recover brings the node into line with the store, whatever an earlier daemon left behind.
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

// recover completes or forgets interrupted deploys, and has this node run what is wanted.
func (m *Manager) recover(ctx context.Context) error {
	failed := m.settleCandidates(ctx)
	// Whatever the nodes do, requests follow the store.
	if err := m.loadRoutes(ctx); err != nil {
		return errors.Join(failed, err)
	}
	if failed == nil {
		failed = m.moveHomeless(ctx)
	}
	if failed == nil {
		failed = m.releaseDraining(ctx)
	}
	if failed != nil {
		return fmt.Errorf("recover: %w", failed)
	}
	return nil
}

func (m *Manager) loadRoutes(ctx context.Context) error {
	all, err := m.Store.List(ctx, "")
	if err != nil {
		return err
	}
	namespaces, err := m.Store.Namespaces(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.routes)
	for _, f := range all {
		m.routes[f.Key()] = &f
	}
	clear(m.namespaces)
	for _, n := range namespaces {
		m.namespaces[n.Name] = n
	}
	return nil
}

func (m *Manager) settleCandidates(ctx context.Context) error {
	if err := m.Store.Place(ctx, m.Nodes, m.memory); err != nil {
		return err
	}
	if err := m.Node.Sync(ctx); err != nil {
		return err
	}
	candidates, err := m.Store.Candidates(ctx)
	if err != nil || len(candidates) == 0 {
		return err
	}
	for i := range candidates {
		if err := m.settleCandidate(ctx, &candidates[i]); err != nil {
			return err
		}
	}
	return m.Node.Sync(ctx)
}

func (m *Manager) releaseDraining(ctx context.Context) error {
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

// settleCandidate completes an interrupted deploy where a node already serves its candidate, as clients have seen its answers, and
// otherwise forgets it. In the first case the other nodes follow.
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
	return m.Store.Abandon(ctx, c)
}

// moveHomeless moves functions whose target this node does not have to the first other one of their lists that takes them.
func (m *Manager) moveHomeless(ctx context.Context) error {
	for _, f := range m.wanted("") {
		missing := m.Node.Available(f.Target)
		if missing == nil {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(f.Spec.Targets), func(t api.Target) bool { return t == f.Target })
		if len(others) == 0 {
			continue
		}
		if err := m.move(ctx, f, others, missing); err != nil {
			return fmt.Errorf("move %s: %w", f.Key(), err)
		}
	}
	return nil
}

// move has a function served by the first of other targets that takes it. Where no target does, Later says why.
func (m *Manager) move(ctx context.Context, f store.Function, others []api.Target, missing error) error {
	moved := f
	moved.Target, moved.Fused = others[0], nil
	if err := m.Store.Move(ctx, &moved); err != nil {
		return err
	}
	p := &plan{targets: others, refused: []api.Refusal{{Target: f.Target, Reason: missing.Error()}}}
	err := m.try(ctx, []*store.Function{&moved}, p)
	switch {
	case errors.Is(err, ErrRefused):
		f.Later, moved.Later = err.Error(), err.Error()
		m.setRoute(&f)
		return m.Store.Abandon(ctx, &moved)
	case err != nil:
		return err
	}
	m.Log.Warn("moved a function, without its kept state, from a target that is not available here",
		"function", f.Key(), "from", f.Target, "to", moved.Target, "reason", missing)
	m.setRoute(&moved)
	return m.Store.Promote(ctx, &moved)
}

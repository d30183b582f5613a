package manager

import (
	"context"

	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/store"
)

// claim keeps the artifacts that requests name from being collected until undo is called: a deploy reads them before its turn comes.
func (m *Manager) claim(rs ...Request) (undo func()) {
	count := func(by int) {
		m.claims.Lock()
		defer m.claims.Unlock()
		for _, r := range rs {
			digest := artifact.DigestOf(r.Image)
			if m.claimed[digest] += by; m.claimed[digest] == 0 {
				delete(m.claimed, digest)
			}
		}
	}
	count(1)
	return func() { count(-1) }
}

// collect deletes artifacts that neither a function nor a change in progress needs and that were not used lately. A change
// calls it as it begins, which counts as a use of all artifacts in use: those that the change replaces or removes can be deployed again
// for a while. An error does not matter.
func (m *Manager) collect(ctx context.Context) {
	if m.Collect == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	used, err := m.artifacts(ctx)
	if err != nil {
		m.Log.Warn("could not look for unused artifacts", "error", err)
		return
	}
	m.claims.Lock()
	defer m.claims.Unlock()
	deleted, err := m.Collect(func(digest string) bool { return used[digest] || m.claimed[digest] > 0 })
	if len(deleted) > 0 {
		m.Log.Info("deleted unused artifacts", "artifacts", deleted)
	}
	if err != nil {
		m.Log.Warn("could not delete unused artifacts", "error", err)
	}
}

// artifacts returns the digests of all artifacts that the store names.
func (m *Manager) artifacts(ctx context.Context) (map[string]bool, error) {
	wanted, err := m.Store.List(ctx, "")
	if err != nil {
		return nil, err
	}
	tried, err := m.Store.Candidates(ctx)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for _, list := range [][]store.Function{wanted, tried, m.wanted("")} {
		for _, f := range list {
			used[artifact.DigestOf(f.Artifact)] = true
			if f.Fused != nil {
				used[artifact.DigestOf(f.Fused.Artifact)] = true
			}
		}
	}
	return used, nil
}

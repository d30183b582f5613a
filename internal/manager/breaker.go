package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// errSuperseded says that a function is no longer what it was when its faults were counted.
var errSuperseded = errors.New("another revision serves")

// TakeOut moves a function to the next target of its list where too many requests failed for its spec's breaker.
// A revision that the next target refuses goes on as it was, and is not moved again. s is what was counted within a time.
func (m *Manager) TakeOut(ctx context.Context, s api.FunctionStats, within time.Duration) error {
	f, ok := m.Route(s.Namespace, s.Name)
	if !ok || f.Revision != s.Revision || f.Target != s.Target || !f.Spec.Breaker.Trips(s.Requests, s.Faults, within) {
		return nil
	}
	next := slices.Clone(f.Spec.Targets[slices.Index(f.Spec.Targets, f.Target)+1:])
	if len(next) == 0 || m.isStuck(f) {
		return nil
	}
	reason := fmt.Sprintf("%s of %s failed: %s", english.Plural(int(s.Faults), "run", ""), english.Plural(int(s.Requests), "request", ""), s.FaultsBy.Explain())
	m.Log.Warn("taking a function out, without its kept state", "function", f.Key(), "revision", f.Revision, "target", f.Target, "because", reason)
	moved := *f
	moved.Fused = nil
	_, err := m.deploy(ctx, []store.Function{moved}, func() (*plan, error) {
		if now, ok := m.Route(f.Namespace, f.Name); !ok || now.Revision != f.Revision {
			return nil, errSuperseded
		}
		return &plan{
			targets: next, refused: []api.Refusal{{Target: f.Target, Reason: "it was taken out: " + reason}},
			serves: fmt.Sprintf("revision %d serves on", f.Revision),
		}, nil
	})
	if errors.Is(err, errSuperseded) {
		return nil
	}
	if errors.Is(err, ErrRefused) {
		m.setStuck(f)
	}
	if err != nil {
		return fmt.Errorf("take %s out: %w", f.Key(), err)
	}
	return nil
}

// isStuck says whether no further target took a revision.
func (m *Manager) isStuck(f *store.Function) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.stuck[f.Workload] == f.Revision
}

func (m *Manager) setStuck(f *store.Function) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck[f.Workload] = f.Revision
}

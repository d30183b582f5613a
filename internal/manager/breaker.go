package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// errSuperseded says that a function is no longer what it was when its faults were counted.
var errSuperseded = errors.New("another revision serves")

// TakeOut moves a function to the next target of its list where that of a second's requests which failed are too many for its spec's breaker.
// Each revision is moved at most once: where the next target does not take it, it goes on as it was. s are the counters of that second.
func (m *Manager) TakeOut(ctx context.Context, s api.FunctionStats) error {
	f, ok := m.Route(s.Namespace, s.Name)
	if !ok || f.Revision != s.Revision || f.Target != s.Target || !f.Spec.Breaker.Trips(s.Requests, s.Faults) {
		return nil
	}
	next := slices.Clone(f.Spec.Targets[slices.Index(f.Spec.Targets, f.Target)+1:])
	if len(next) == 0 || !m.tripsFirst(f) {
		return nil
	}
	reason := fmt.Sprintf("%s of %s failed within a second: %s", english.Plural(int(s.Faults), "run", ""), english.Plural(int(s.Requests), "request", ""), s.FaultsBy.Explain())
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
	if err != nil {
		return fmt.Errorf("take %s out: %w", f.Key(), err)
	}
	return nil
}

// tripsFirst says whether a revision was not to be taken out before. From now on it was.
func (m *Manager) tripsFirst(f *store.Function) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.tripped[f.Workload]
	m.tripped[f.Workload] = f.Revision
	return before != f.Revision
}

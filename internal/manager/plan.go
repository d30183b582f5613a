package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// ErrRefused says that no permitted target took a lambda. Its message holds each target's reason.
var ErrRefused = errors.New("refused")

// plan says where candidates are tried.
type plan struct {
	targets []api.Target  // in this order, until one takes them
	refused []api.Refusal // further targets, with the reasons to report
	serves  string        // what to report where no target takes them
}

// plan plans for one function. Where a revision serves already, the new one never goes further down the list than that: a mistake in
// new code does not take a function off the NIC. It goes up to the first target that takes it, unless it takes over state, which is on the
// old revision's target: targets share no state.
func (m *Manager) plan(ctx context.Context, f *store.Function) (*plan, error) {
	everywhere := &plan{targets: f.Spec.Targets}
	old, ok := m.Route(f.Namespace, f.Name)
	if !ok {
		return everywhere, nil
	}
	running, err := m.Node.Running(ctx)
	if err != nil {
		return nil, err
	}
	home := slices.Index(f.Spec.Targets, old.Target)
	if _, serves := running[old.Target][old.Workload]; !serves || home < 0 {
		return everywhere, nil
	}
	p := &plan{
		targets: f.Spec.Targets[:home+1],
		serves:  fmt.Sprintf("revision %d serves on%s", old.Revision, wayOut(f.Spec.Targets, old.Target)),
	}
	if !m.takesOver(f, old) {
		return p, nil
	}
	for _, t := range f.Spec.Targets[:home] {
		p.refused = append(p.refused, api.Refusal{Target: t, Reason: fmt.Sprintf(
			"it stays on %s, where the state is that it takes over; `--target %s` moves it, without that state", old.Target, t)})
	}
	p.targets = []api.Target{old.Target}
	return p, nil
}

// takesOver says whether f takes over old's state, or would if it fitted.
func (m *Manager) takesOver(f, old *store.Function) bool {
	from, err := m.Artifacts.Manifest(artifact.DigestOf(old.Artifact))
	if err != nil {
		return true // unknown: assume so
	}
	to, err := m.Artifacts.Manifest(artifact.DigestOf(f.Artifact))
	if err != nil {
		return true
	}
	h, err := backend.HandOver(from.Layouts, to.Layouts)
	return err != nil || h != backend.Handover{}
}

// wayOut says how a function can leave its target, where its list has another.
func wayOut(targets []api.Target, home api.Target) string {
	i := slices.IndexFunc(targets, func(t api.Target) bool { return t != home })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("; deploy with `--target %s` to move from %s on purpose: kept state does not move along", targets[i], home)
}

// try has the nodes of candidates try them on the first target of a plan, which the store has, and on the next where a node refuses. It
// records in the candidates which target took them all on all nodes, and why earlier targets did not. A caller who hangs up ends it before
// the next target.
func (m *Manager) try(ctx context.Context, cs []*store.Function, p *plan) error {
	var refused []api.Refusal
	var reasons []error
	for i, t := range p.targets {
		if i > 0 {
			if err := m.tryNext(ctx, cs, t); err != nil {
				return err
			}
		}
		why, err := m.refusals(ctx, cs)
		if err != nil {
			return err
		}
		if why == nil {
			for _, c := range cs {
				c.Refused = slices.Concat(refused, p.refused)
			}
			return nil
		}
		refused = append(refused, api.Refusal{Target: t, Reason: why.Error()})
		reasons = append(reasons, fmt.Errorf("%s: %w", t, why))
	}
	err := fmt.Errorf("%w: %w", ErrRefused, errors.Join(reasons...))
	if p.serves != "" {
		err = fmt.Errorf("%w\n%s", err, p.serves)
	}
	return err
}

func (m *Manager) tryNext(ctx context.Context, cs []*store.Function, t api.Target) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deploy on %s: %w", t, err)
	}
	for _, c := range cs {
		c.Target = t
	}
	return write(ctx, func(ctx context.Context) error { return m.Store.Try(ctx, cs...) })
}

// refusals waits for the nodes' statuses of candidates, and returns why they refuse them. Candidates of one program are taken together, or
// refused for one reason.
func (m *Manager) refusals(ctx context.Context, cs []*store.Function) (why, err error) {
	ctx, cancel := own(ctx, answerLimit)
	defer cancel()
	for _, c := range cs {
		statuses, err := m.Store.Await(ctx, c)
		if err != nil {
			return nil, err
		}
		if why == nil {
			why = refusal(c, statuses)
		}
	}
	return why, nil
}

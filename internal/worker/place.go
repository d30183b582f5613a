package worker

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

// Apply makes f serve on the first target of its list that takes it, and records in f which one, and why those before it
// did not. Other targets that run the workload go on until Retire.
func (w *Worker) Apply(ctx context.Context, f *store.Function) error {
	return w.applyFirst(ctx, f, f.Spec.Targets)
}

// Replace makes f serve in place of old. It never goes further down its list than to where old serves: a mistake in new code
// does not take a function off the NIC. It goes up to the first target that takes it, unless it takes over state of old's:
// that is on old's target, and targets share none.
func (w *Worker) Replace(ctx context.Context, f, old *store.Function) error {
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	home := slices.Index(f.Spec.Targets, old.Target)
	if _, serves := running[old.Target][f.Workload]; !serves || home < 0 {
		return w.Apply(ctx, f)
	}
	above, stays := f.Spec.Targets[:home], w.takesOver(f, old)
	if stays {
		err = w.applyFirst(ctx, f, []api.Target{old.Target})
	} else {
		err = w.applyFirst(ctx, f, f.Spec.Targets[:home+1])
	}
	if errors.Is(err, ErrRefused) {
		return fmt.Errorf("%w\nrevision %d serves on%s", err, old.Revision, wayOut(f.Spec.Targets, old.Target))
	}
	if err != nil || !stays {
		return err
	}
	for _, t := range above {
		f.Refused = append(f.Refused, api.Refusal{Target: t, Reason: fmt.Sprintf(
			"it stays on %s, where the state is that it takes over; `--target %s` moves it, without that state", old.Target, t)})
	}
	return nil
}

// takesOver says whether f takes over state of old's, or would if it fitted.
func (w *Worker) takesOver(f, old *store.Function) bool {
	from, err := w.artifact(old)
	if err != nil {
		return true // nobody knows
	}
	to, err := w.artifact(f)
	if err != nil {
		return true
	}
	h, err := backend.HandOver(from.Manifest.Layouts, to.Manifest.Layouts)
	return err != nil || h != backend.Handover{}
}

// wayOut says how a function leaves the target that it serves on, where its list has another.
func wayOut(targets []api.Target, home api.Target) string {
	i := slices.IndexFunc(targets, func(t api.Target) bool { return t != home })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("; deploy with `--target %s` to move from %s on purpose: kept state does not move along", targets[i], home)
}

// Keep makes f serve on the target that it is recorded on. Only where this node does not have that target, f goes to the first
// other one of its list that takes it, and f records so.
func (w *Worker) Keep(ctx context.Context, f *store.Function) error {
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	if s, ok := running[f.Target][f.Workload]; ok && s.Revision == f.Revision {
		return nil
	}
	if w.Available(f.Target) == nil {
		earlier := f.Refused
		err := w.applyFirst(ctx, f, []api.Target{f.Target})
		f.Refused = earlier
		return err
	}
	others := slices.DeleteFunc(slices.Clone(f.Spec.Targets), func(t api.Target) bool { return t == f.Target })
	return w.applyFirst(ctx, f, append([]api.Target{f.Target}, others...))
}

// applyFirst is Apply with some of f's targets. What runs already is not deployed again.
func (w *Worker) applyFirst(ctx context.Context, f *store.Function, targets []api.Target) error {
	if _, err := w.artifact(f); err != nil {
		return err
	}
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	var refused []api.Refusal
	var reasons []error
	for _, t := range targets {
		s, ok := running[t][f.Workload]
		if !ok || s.Revision != f.Revision {
			err = w.applyTo(ctx, t, f)
		}
		if err == nil {
			f.Target, f.Refused = t, refused
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("deploy %s on %s: %w", f.Key(), t, err)
		}
		refused = append(refused, api.Refusal{Target: t, Reason: err.Error()})
		reasons = append(reasons, fmt.Errorf("%s: %w", t, err))
		err = nil
	}
	return fmt.Errorf("%w: %w", ErrRefused, errors.Join(reasons...))
}

func (w *Worker) artifact(f *store.Function) (*artifact.Artifact, error) { return w.load(f.Artifact) }

func (w *Worker) load(image string) (*artifact.Artifact, error) {
	a, err := w.artifacts.Get(artifact.DigestOf(image))
	if err != nil {
		return nil, fmt.Errorf("load artifact %s: %w", image, err)
	}
	return a, nil
}

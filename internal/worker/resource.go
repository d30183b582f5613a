package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// AddResource gives a lambda on a target what decode reads, and returns what the target made of it.
func (w *Worker) AddResource(ctx context.Context, t api.Target, workload uint32, path string, decode func(request any) error) (any, error) {
	r, err := w.resource(t, path)
	if err != nil {
		return nil, err
	}
	return r.Add(ctx, workload, decode)
}

// ListResource lists what a lambda has under a path.
func (w *Worker) ListResource(ctx context.Context, t api.Target, workload uint32, path string) (any, error) {
	r, err := w.resource(t, path)
	if err != nil {
		return nil, err
	}
	return r.List(ctx, workload)
}

// RemoveResource removes one of them.
func (w *Worker) RemoveResource(ctx context.Context, t api.Target, workload uint32, path string, number uint32) error {
	r, err := w.resource(t, path)
	if err != nil {
		return err
	}
	return r.Remove(ctx, workload, number)
}

// resource finds the resource of a target's lambdas under a path.
func (w *Worker) resource(t api.Target, path string) (r backend.Resource, err error) {
	p, err := w.place(t)
	if err != nil {
		return r, err
	}
	if r, ok := find(p.Backend, path); ok {
		return r, nil
	}
	if group, ok := p.Backend.(backend.Group); ok {
		if _, ok := find(group[0], path); ok {
			return r, fmt.Errorf("%w: %s belong to one interface: bring an instance up with one --nic", backend.ErrResource, path)
		}
	}
	for _, other := range w.Places() {
		if _, ok := find(other.Backend, path); ok {
			return r, fmt.Errorf("%w: target %s has no %s: deploy with `--target %s`", backend.ErrResource, t, path, other.Target)
		}
	}
	return r, fmt.Errorf("%w resource on target %s: %s", backend.ErrNoResource, t, path)
}

func find(b backend.Backend, path string) (r backend.Resource, ok bool) {
	has, ok := b.(backend.Resources)
	if !ok {
		return r, false
	}
	all := has.Resources()
	i := slices.IndexFunc(all, func(r backend.Resource) bool { return r.Path == path })
	if i < 0 {
		return r, false
	}
	return all[i], true
}

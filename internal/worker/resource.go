package worker

import (
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// Resource finds the resource of a target's lambdas under a path.
func (w *Worker) Resource(t api.Target, path string) (r backend.Resource, err error) {
	p, err := w.place(t)
	if err != nil {
		return r, err
	}
	if r, ok := resource(p.Backend, path); ok {
		return r, nil
	}
	if group, ok := p.Backend.(backend.Group); ok {
		if _, ok := resource(group[0], path); ok {
			return r, fmt.Errorf("%w: %s are of one interface each: bring an instance up with one --nic", backend.ErrResource, path)
		}
	}
	for _, other := range w.Places() {
		if _, ok := resource(other.Backend, path); ok {
			return r, fmt.Errorf("%w: target %s has no %s: deploy with `--target %s`", backend.ErrResource, t, path, other.Target)
		}
	}
	return r, fmt.Errorf("%w resource on target %s: %s", backend.ErrNoResource, t, path)
}

func resource(b backend.Backend, path string) (r backend.Resource, ok bool) {
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

package manager

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// resource finds a function's resource under a path, and the function's workload ID there.
func (m *Manager) resource(namespace, name, path string) (r backend.Resource, workload uint32, err error) {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	f, ok := m.Route(namespace, name)
	if !ok {
		return r, 0, fmt.Errorf("%w: %s/%s", store.ErrNotFound, namespace, name)
	}
	r, err = m.Node.Resource(f.Target, path)
	return r, f.Workload, err
}

// AddResource adds what decode reads to a function's resource, and returns the target's result.
func (m *Manager) AddResource(ctx context.Context, namespace, name, path string, decode func(request any) error) (any, error) {
	r, workload, err := m.resource(namespace, name, path)
	if err != nil {
		return nil, err
	}
	return r.Add(ctx, workload, decode)
}

// ListResource lists a function's resource under a path.
func (m *Manager) ListResource(ctx context.Context, namespace, name, path string) (any, error) {
	r, workload, err := m.resource(namespace, name, path)
	if err != nil {
		return nil, err
	}
	return r.List(ctx, workload)
}

// RemoveResource removes an item of a resource.
func (m *Manager) RemoveResource(ctx context.Context, namespace, name, path string, number uint32) error {
	r, workload, err := m.resource(namespace, name, path)
	if err != nil {
		return err
	}
	return r.Remove(ctx, workload, number)
}

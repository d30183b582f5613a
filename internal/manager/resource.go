package manager

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// find finds a function; without a namespace, in the default one.
func (m *Manager) find(namespace, name string) (*store.Function, error) {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	f, ok := m.Route(namespace, name)
	if !ok {
		return nil, fmt.Errorf("%w: %s/%s", store.ErrNotFound, namespace, name)
	}
	return f, nil
}

// AddResource gives a function what decode reads, and returns what its target made of it (backend.Resource).
func (m *Manager) AddResource(ctx context.Context, namespace, name, path string, decode func(request any) error) (any, error) {
	f, err := m.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return m.Node.AddResource(ctx, f.Target, f.Workload, path, decode)
}

// ListResource lists what a function has under a path.
func (m *Manager) ListResource(ctx context.Context, namespace, name, path string) (any, error) {
	f, err := m.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return m.Node.ListResource(ctx, f.Target, f.Workload, path)
}

// RemoveResource removes one of them.
func (m *Manager) RemoveResource(ctx context.Context, namespace, name, path string, number uint32) error {
	f, err := m.find(namespace, name)
	if err != nil {
		return err
	}
	return m.Node.RemoveResource(ctx, f.Target, f.Workload, path, number)
}

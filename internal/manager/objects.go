package manager

import (
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// withObjects finds a function that has a program of its own.
func (m *Manager) withObjects(namespace, name string) (*store.Function, error) {
	f, err := m.find(namespace, name)
	if err == nil && f.Fused != nil {
		err = fmt.Errorf("%w: %s is served from a program of several lambdas, which may have objects of one name: deploy it by itself", ErrInvalid, f.Name)
	}
	return f, err
}

// Objects lists the objects of a function's lambda.
func (m *Manager) Objects(ctx context.Context, namespace, name string) ([]api.Object, error) {
	f, err := m.withObjects(namespace, name)
	if err != nil {
		return nil, err
	}
	return m.Node.Objects(ctx, f.Target, f.Workload)
}

// ReadObject returns an object as the machine has it in memory.
func (m *Manager) ReadObject(ctx context.Context, namespace, name, object string) ([]byte, error) {
	f, err := m.withObjects(namespace, name)
	if err != nil {
		return nil, err
	}
	return m.Node.ReadObject(ctx, f.Target, f.Workload, object)
}

// WriteObject writes an object, and lets packets that wait for it go on.
func (m *Manager) WriteObject(ctx context.Context, namespace, name, object string, value []byte) error {
	f, err := m.withObjects(namespace, name)
	if err != nil {
		return err
	}
	return m.Node.WriteObject(ctx, f.Target, f.Workload, object, value)
}

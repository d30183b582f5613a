package manager

import (
	"cmp"
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// objects finds the backend with a function's objects.
func (m *Manager) objects(namespace, name string) (backend.Objects, uint32, error) {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	f, ok := m.Route(namespace, name)
	if !ok {
		return nil, 0, fmt.Errorf("%w: %s/%s", store.ErrNotFound, namespace, name)
	}
	if f.Fused != nil {
		return nil, 0, fmt.Errorf("%w: %s is served from a program of several lambdas, which may have objects of one name: deploy it by itself", ErrInvalid, f.Name)
	}
	o, err := m.Node.Objects(f.Target)
	return o, f.Workload, err
}

// Objects lists the objects of a function's lambda.
func (m *Manager) Objects(ctx context.Context, namespace, name string) ([]api.Object, error) {
	o, workload, err := m.objects(namespace, name)
	if err != nil {
		return nil, err
	}
	return o.Objects(ctx, workload)
}

// ReadObject returns an object as the machine has it in memory.
func (m *Manager) ReadObject(ctx context.Context, namespace, name, object string) ([]byte, error) {
	o, workload, err := m.objects(namespace, name)
	if err != nil {
		return nil, err
	}
	return o.ReadObject(ctx, workload, object)
}

// WriteObject writes an object, and lets packets that wait for it go on.
func (m *Manager) WriteObject(ctx context.Context, namespace, name, object string, value []byte) error {
	o, workload, err := m.objects(namespace, name)
	if err != nil {
		return err
	}
	return o.WriteObject(ctx, workload, object, value)
}

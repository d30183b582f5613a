package worker

import (
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

func (w *Worker) objects(t api.Target) (backend.Objects, error) {
	p, err := w.place(t)
	if err != nil {
		return nil, err
	}
	o, ok := p.Backend.(backend.Objects)
	if !ok {
		return nil, fmt.Errorf("%w: target %s keeps objects to itself: deploy with `--target %s`", backend.ErrNoObject, t, api.TargetNIC)
	}
	return o, nil
}

// Objects lists the objects of a lambda on a target.
func (w *Worker) Objects(ctx context.Context, t api.Target, workload uint32) ([]api.Object, error) {
	o, err := w.objects(t)
	if err != nil {
		return nil, err
	}
	return o.Objects(ctx, workload)
}

// ReadObject returns an object as the machine has it in memory.
func (w *Worker) ReadObject(ctx context.Context, t api.Target, workload uint32, name string) ([]byte, error) {
	o, err := w.objects(t)
	if err != nil {
		return nil, err
	}
	return o.ReadObject(ctx, workload, name)
}

// WriteObject writes an object, and lets packets that wait for it go on.
func (w *Worker) WriteObject(ctx context.Context, t api.Target, workload uint32, name string, value []byte) error {
	o, err := w.objects(t)
	if err != nil {
		return err
	}
	return o.WriteObject(ctx, workload, name, value)
}

package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// Objects returns what reaches the objects of lambdas on a target.
func (w *Worker) Objects(t api.Target) (backend.Objects, error) {
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

// members calls f with each member of a group, whose objects are each its own.
func (g Group) members(f func(backend.Objects) error) error {
	var errs []error
	for i, m := range g {
		o, ok := m.(backend.Objects)
		if !ok {
			return fmt.Errorf("%w: interface %d of %d keeps objects to itself", backend.ErrNoObject, i+1, len(g))
		}
		errs = append(errs, f(o))
	}
	return errors.Join(errs...)
}

// Objects are the first member's: all have the same.
func (g Group) Objects(ctx context.Context, workload uint32) (list []api.Object, err error) {
	err = g[:1].members(func(o backend.Objects) error {
		list, err = o.Objects(ctx, workload)
		return err
	})
	return list, err
}

// ReadObject reads the first member's.
func (g Group) ReadObject(ctx context.Context, workload uint32, name string) (value []byte, err error) {
	err = g[:1].members(func(o backend.Objects) error {
		value, err = o.ReadObject(ctx, workload, name)
		return err
	})
	return value, err
}

// WriteObject writes on all members.
func (g Group) WriteObject(ctx context.Context, workload uint32, name string, value []byte) error {
	return g.members(func(o backend.Objects) error { return o.WriteObject(ctx, workload, name, value) })
}

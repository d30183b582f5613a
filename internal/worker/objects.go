package worker

import (
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// Objects returns the access to objects of lambdas on a target.
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

package compiler

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
)

// Invoke sends one request to a lambda, wherever it runs.
type Invoke func(ctx context.Context, method uint32, request []byte) (api.Status, []byte, error)

// RunExamples sends each example's request and reports every reply that is not the example's.
func RunExamples(ctx context.Context, examples []api.Example, invoke Invoke) error {
	var errs []error
	for i, e := range examples {
		if err := RunExample(ctx, e, invoke); err != nil {
			errs = append(errs, fmt.Errorf("example %d (%s): %w", i+1, e.Name, err))
		}
	}
	return errors.Join(errs...)
}

// RunExample sends an example's request, and says how the reply differs from the example's, or why there was none.
func RunExample(ctx context.Context, e api.Example, invoke Invoke) error {
	status, reply, err := invoke(ctx, e.Method, e.RequestBytes())
	if err != nil {
		return err
	}
	return e.Check(status, reply)
}

package backend

import (
	"context"
	"errors"
)

// A Resource is a kind of thing that belongs to a lambda and is removed with it, such as its queue pairs. In HTTP, POST to
// /system/function/NAME/PATH makes one, GET lists them, and DELETE with a number behind the path removes one.
type Resource struct {
	Path string // such as rdma/regions
	// Add makes the thing whose request decode reads into its argument.
	Add    func(ctx context.Context, workload uint32, decode func(request any) error) (any, error)
	List   func(ctx context.Context, workload uint32) (any, error)
	Remove func(ctx context.Context, workload, number uint32) error
}

// Resources is a backend whose lambdas have resources.
type Resources interface {
	Resources() []Resource
}

// ErrResource says that a resource cannot be made, ErrNoResource that it does not exist.
var (
	ErrResource   = errors.New("refused")
	ErrNoResource = errors.New("no such")
)

// NewResource returns a resource whose things are made from a Request.
func NewResource[Request, Thing any](
	path string,
	add func(ctx context.Context, workload uint32, q Request) (*Thing, error),
	list func(ctx context.Context, workload uint32) ([]Thing, error),
	remove func(ctx context.Context, workload, number uint32) error,
) Resource {
	return Resource{
		Path: path,
		Add: func(ctx context.Context, workload uint32, decode func(any) error) (any, error) {
			var q Request
			if err := decode(&q); err != nil {
				return nil, err
			}
			return add(ctx, workload, q)
		},
		List: func(ctx context.Context, workload uint32) (any, error) {
			things, err := list(ctx, workload)
			return append([]Thing{}, things...), err // in JSON, an empty list must not be null
		},
		Remove: remove,
	}
}

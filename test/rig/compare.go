package rig

import (
	"context"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/compiler/corpus"
)

// ErrDiffers says that an answer is not what it has to be.
var ErrDiffers = errors.New("answers differ")

// Check puts an artifact in both places, asks both for the vectors' replies, and takes it out.
func (r *Rig) Check(ctx context.Context, a *compiler.Artifact, vectors []corpus.Vector) error {
	return r.during(ctx, a, func() (errs []error) {
		for i, v := range vectors {
			want := Answer{Type: api.TypeResponse, Payload: v.Out}
			n, p, err := r.askBoth(v.In)
			if err != nil || !n.Equal(want) || !p.Equal(want) {
				errs = append(errs, fmt.Errorf("%w: vector %d: NIC %v, process %v, want %v", ErrDiffers, i, n, p, want), err)
			}
		}
		return errs
	})
}

// Compare puts an artifact in both places, asks both the same, and takes it out. The lambda has to answer.
func (r *Rig) Compare(ctx context.Context, a *compiler.Artifact, requests [][]byte) error {
	return r.during(ctx, a, func() (errs []error) {
		for _, request := range requests {
			n, p, err := r.askBoth(request)
			if err != nil || !n.Equal(p) || n.Type != api.TypeResponse {
				errs = append(errs, fmt.Errorf("%w: request %x: NIC %v, process %v", ErrDiffers, request, n, p), err)
			}
		}
		return errs
	})
}

func (r *Rig) during(ctx context.Context, a *compiler.Artifact, ask func() []error) error {
	if err := r.Put(ctx, a); err != nil {
		return err
	}
	return errors.Join(append(ask(), r.Remove(ctx))...)
}

func (r *Rig) askBoth(request []byte) (n, p Answer, err error) {
	n, errN := r.AskNIC(0, request)
	p, errP := r.AskProcess(0, request)
	return n, p, errors.Join(errN, errP)
}

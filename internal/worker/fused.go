package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// ReplaceFused makes functions serve from one program, in place of what their names serve: old gives that. All are swapped in, or
// none. A function that takes over state stays where that is, and so has to be on the NIC.
func (w *Worker) ReplaceFused(ctx context.Context, fs []*store.Function, old func(*store.Function) (*store.Function, bool)) error {
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	for _, f := range fs {
		before, ok := old(f)
		if !ok || before.Target == api.TargetNIC {
			continue
		}
		if _, serves := running[before.Target][f.Workload]; serves && w.takesOver(f, before) {
			return fmt.Errorf("%w: %s has its state on %s: deploy it with `--target %s` first to move it, without that state",
				ErrRefused, f.Name, before.Target, api.TargetNIC)
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deploy on %s: %w", api.TargetNIC, err)
	}
	ctx, cancel := whole(ctx)
	defer cancel()
	if err := w.deployFused(ctx, fs); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRefused, api.TargetNIC, err)
	}
	for _, f := range fs {
		f.Target, f.Refused = api.TargetNIC, nil
	}
	return nil
}

// deployFused deploys functions that are members of one program. What runs already is not deployed again.
func (w *Worker) deployFused(ctx context.Context, fs []*store.Function) error {
	p, err := w.place(api.TargetNIC)
	if err != nil {
		return err
	}
	fuser, ok := p.Backend.(backend.Fuser)
	if !ok {
		return errors.New("it runs no fused programs")
	}
	fused := fs[0].Fused
	a, err := w.load(fused.Artifact)
	if err != nil {
		return err
	}
	program := backend.Fused{BPF: a.BPF, Spec: a.Manifest.Spec}
	for _, m := range fused.Members {
		program.Members = append(program.Members, backend.FusedMember{Name: m.Name, Workload: m.Workload})
	}
	for _, f := range fs {
		d, err := deployment(f, p)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		program.Serving = append(program.Serving, d)
	}
	return fuser.DeployFused(ctx, program)
}

// restoreFused brings programs of several functions back, each as one. What does not succeed is for Keep to find out, function by
// function.
func (w *Worker) restoreFused(ctx context.Context, functions []store.Function) error {
	running, err := w.Running(ctx)
	if err != nil {
		return err
	}
	var programs [][]*store.Function
	for i := range functions {
		f := &functions[i]
		if s, ok := running[f.Target][f.Workload]; f.Fused == nil || f.Target != api.TargetNIC || ok && s.Revision == f.Revision {
			continue
		}
		at := slices.IndexFunc(programs, func(p []*store.Function) bool { return p[0].Fused.Equal(f.Fused) })
		if at < 0 {
			programs, at = append(programs, nil), len(programs)
		}
		programs[at] = append(programs[at], f)
	}
	for _, p := range programs {
		_ = w.deployFused(ctx, p)
	}
	return nil
}

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/store"
)

// DeployFused makes new revisions of several functions serve from one program on the NIC, all of them or none. From there on, each is a
// function like any other.
func (m *Manager) DeployFused(ctx context.Context, rs []Request) ([]api.Function, error) {
	defer m.claim(rs...)()
	fs, artifacts, err := m.checkAll(rs)
	if err != nil {
		return nil, err
	}
	if err := m.Room(); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	program, err := m.Fuse(ctx, artifacts)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build: %w", ctx.Err())
	} else if err != nil {
		return nil, buildError(err)
	}
	fused := &store.Fused{Artifact: program.Manifest.Spec.Name + "@" + program.Digest}
	for i, member := range program.Manifest.Members {
		fused.Members = append(fused.Members, store.Member{Name: member.Name})
		fs[i].Fused = fused
	}
	return m.deploy(ctx, fs, func() (*plan, error) { return m.planFused(ctx, fs) })
}

// planFused plans for functions of one program. A function that takes over state stays on its target, which so has to be the NIC.
func (m *Manager) planFused(ctx context.Context, fs []store.Function) (*plan, error) {
	running, err := m.Node.Running(ctx)
	if err != nil {
		return nil, err
	}
	for i := range fs {
		f := &fs[i]
		before, ok := m.Route(f.Namespace, f.Name)
		if !ok || before.Target == api.TargetNIC {
			continue
		}
		if _, serves := running[before.Target][before.Workload]; serves && m.takesOver(f, before) {
			return nil, fmt.Errorf("%w: %s has its state on %s: deploy it with `--target %s` first to move it, without that state",
				ErrRefused, f.Name, before.Target, api.TargetNIC)
		}
	}
	return &plan{targets: []api.Target{api.TargetNIC}}, nil
}

// checkAll turns requests into functions that can become members of one program.
func (m *Manager) checkAll(rs []Request) (fs []store.Function, artifacts []*artifact.Artifact, err error) {
	if len(rs) == 0 {
		return nil, nil, fmt.Errorf("%w: there is nothing to fuse: name the functions", ErrInvalid)
	}
	var errs []error
	for _, r := range rs {
		f, err := m.check(r)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		a, err := m.artifact(r.Image)
		if err != nil {
			return nil, nil, err
		}
		errs = append(errs, checkMember(&f, a.Manifest.Layouts, fs))
		fs, artifacts = append(fs, f), append(artifacts, a)
	}
	return fs, artifacts, errors.Join(errs...)
}

// checkMember refuses functions that cannot be fused, before anything is compiled.
func checkMember(f *store.Function, layouts api.Layouts, others []store.Function) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s cannot be fused: %s", ErrInvalid, f.Name, fmt.Sprintf(format, args...))
	}
	switch {
	case slices.ContainsFunc(others, func(o store.Function) bool { return o.Key() == f.Key() }):
		return refuse("it is named twice: leave one out, or give it another name")
	case !slices.Contains(f.Spec.Targets, api.TargetNIC):
		return refuse("a fused program runs on target %s, which is not among its targets %v: deploy it by itself", api.TargetNIC, f.Spec.Targets)
	case f.Spec.P4 != "":
		return refuse("it has a match stage of its own (p4), which no workload ID selects: deploy it by itself")
	case layouts.Migrated != "" || layouts.From != "":
		return refuse("it has LAMBDA_MIGRATED, which is converted for one lambda at a time: deploy it by itself, or declare it LAMBDA_KEPT")
	}
	return nil
}

// fusedWith names the fused program that serves a function, and its other members; nil if the function has its own program.
func (m *Manager) fusedWith(f *store.Function) *api.Fused {
	if f.Fused == nil || f.Target != api.TargetNIC {
		return nil
	}
	fused := &api.Fused{Image: f.Fused.Artifact, With: []string{}}
	for _, other := range m.wanted("") {
		if other.Workload == f.Workload || other.Target != api.TargetNIC || !other.Fused.Equal(f.Fused) {
			continue
		}
		name := other.Name
		if other.Namespace != f.Namespace {
			name += "." + other.Namespace
		}
		fused.With = append(fused.With, name)
	}
	return fused
}

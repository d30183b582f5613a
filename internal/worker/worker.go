// Package worker owns the places of one node where lambdas run, and makes them run what the store wants.
package worker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// ErrRefused says that no target which may run a lambda took it. Its message holds each target's reason.
var ErrRefused = errors.New("refused")

// Artifacts holds compiled lambdas by digest.
type Artifacts interface {
	Get(digest string) (*artifact.Artifact, error)
}

// Worker runs one node.
type Worker struct {
	Name string // of the node

	artifacts Artifacts

	mu     sync.RWMutex
	places []backend.Place
}

// New returns the worker of the node with that name.
func New(name string, artifacts Artifacts, places ...backend.Place) *Worker {
	return &Worker{Name: name, places: slices.Clone(places), artifacts: artifacts}
}

// Places returns the node's places.
func (w *Worker) Places() []backend.Place {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return slices.Clone(w.places)
}

// SetPlace puts p in place of what the node had for its target.
func (w *Worker) SetPlace(p backend.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range w.places {
		if w.places[i].Target == p.Target {
			w.places[i] = p
		}
	}
}

// Available is no error where the node has that target.
func (w *Worker) Available(t api.Target) error {
	_, err := w.place(t)
	return err
}

func (w *Worker) place(t api.Target) (backend.Place, error) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	i := slices.IndexFunc(w.places, func(p backend.Place) bool { return p.Target == t })
	switch {
	case i < 0:
		return backend.Place{}, fmt.Errorf("target %s does not exist on this node", t)
	case w.places[i].Backend == nil:
		return backend.Place{}, fmt.Errorf("target %s is not available: %s", t, w.places[i].Reason)
	}
	return w.places[i], nil
}

// wholeLimit ends what hangs. Backends have shorter limits for what they wait for.
const wholeLimit = 5 * time.Minute

// whole is for what a backend must not be left in the middle of by a caller that hangs up: a revision that begins to serve, and
// the one before it, which has calls of others to finish.
func whole(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), wholeLimit)
}

// applyTo makes f serve on a target, once begun also where ctx ends.
func (w *Worker) applyTo(ctx context.Context, t api.Target, f *store.Function) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := whole(ctx)
	defer cancel()
	if f.Fused != nil && t == api.TargetNIC {
		return w.deployFused(ctx, []*store.Function{f})
	}
	p, err := w.place(t)
	if err != nil {
		return err
	}
	a, err := w.artifact(f)
	if err != nil {
		return err
	}
	if _, err := a.Object(t); err != nil {
		return err
	}
	d, err := deployment(f, p)
	if err != nil {
		return err
	}
	d.Layouts, d.BPF, d.Native, d.Source = a.Manifest.Layouts, a.BPF, a.Native, a.Source
	return p.Backend.Deploy(ctx, d)
}

// deployment is what a place is to run, but for the objects.
func deployment(f *store.Function, p backend.Place) (backend.Deployment, error) {
	services, err := resolve(f.Spec.Services, p)
	return backend.Deployment{
		Namespace: f.Namespace, Name: f.Name, Workload: f.Workload, Revision: f.Revision, Spec: f.Spec, Services: services,
	}, err
}

func resolve(specs []api.ServiceSpec, p backend.Place) ([]backend.Service, error) {
	services := make([]backend.Service, len(specs))
	for i, s := range specs {
		services[i] = backend.Service{Name: s.Name, Protocol: s.Protocol, Weights: s.Weights, Timeout: s.Timeout, Retries: s.Retries}
		if s.ID != nil {
			services[i].ID = *s.ID
		}
		for _, server := range s.Servers() {
			addr, port, err := api.HostPort(server)
			if err != nil {
				return nil, fmt.Errorf("service %s: %w", s.Name, err)
			}
			if !addr.IsValid() {
				addr = p.Host
			}
			if !addr.IsValid() {
				return nil, fmt.Errorf("service %s: the host has no address there: give one with --service %s=IP:%d", s.Name, s.Name, port)
			}
			if addr.IsLoopback() && !p.Host.IsLoopback() {
				return nil, fmt.Errorf("service %s: target %s does not reach the host's loopback: give --service %s=host:%d, and have the server listen on all addresses", s.Name, p.Target, s.Name, port)
			}
			services[i].Servers = append(services[i].Servers, netip.AddrPortFrom(addr, port))
		}
	}
	return services, nil
}

// Retire ends a workload everywhere but on the target keep, which may be "".
func (w *Worker) Retire(ctx context.Context, workload uint32, keep api.Target) error {
	var errs []error
	for _, p := range w.Places() {
		if p.Backend == nil || p.Target == keep {
			continue
		}
		if err := p.Backend.Remove(ctx, workload); err != nil {
			errs = append(errs, fmt.Errorf("remove workload %#x from %s: %w", workload, p.Target, err))
		}
	}
	return errors.Join(errs...)
}

// Running is what the backends of a node run: a status by target and workload ID.
type Running map[api.Target]map[uint32]backend.Status

// Running asks every backend what it runs.
func (w *Worker) Running(ctx context.Context) (Running, error) {
	running := make(Running)
	for _, p := range w.Places() {
		if p.Backend == nil {
			continue
		}
		list, err := p.Backend.Status(ctx)
		if err != nil {
			return nil, fmt.Errorf("ask target %s what it runs: %w", p.Target, err)
		}
		running[p.Target] = make(map[uint32]backend.Status, len(list))
		for _, s := range list {
			running[p.Target][s.Workload] = s
		}
	}
	return running, nil
}

// Endpoint says where λ-RPC requests for a workload on a target go.
func (w *Worker) Endpoint(t api.Target, workload uint32) (netip.AddrPort, bool) {
	p, err := w.place(t)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return p.Backend.Endpoint(workload)
}

// Asker is what asks a target's lambdas without a link, nil where they cannot be.
func (w *Worker) Asker(t api.Target) backend.Asker {
	p, err := w.place(t)
	if err != nil {
		return nil
	}
	a, _ := p.Backend.(backend.Asker)
	return a
}

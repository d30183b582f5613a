package worker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// deployLimit ends a deploy that hangs. Backends have shorter limits for their waits.
const deployLimit = 5 * time.Minute

// deploy makes a placement serve. What runs already is not deployed again.
func (w *Worker) deploy(ctx context.Context, p *store.Placement, running backend.Running) error {
	if running.Serves(p.Target, p.Function.Workload, p.Function.Revision) {
		return nil
	}
	if p.Function.Fused != nil && p.Target == api.TargetNIC {
		return w.deployFused(ctx, []*store.Placement{p})
	}
	ctx, cancel := context.WithTimeout(ctx, deployLimit)
	defer cancel()
	place, err := w.placeOf(p)
	if err != nil {
		return err
	}
	a, err := w.artifact(p.Function.Artifact)
	if err != nil {
		return err
	}
	if _, err := a.Object(p.Target); err != nil {
		return err
	}
	d, err := deployment(p.Function, place)
	if err != nil {
		return err
	}
	d.Layouts, d.BPF, d.Native, d.Source = a.Manifest.Layouts, a.BPF, a.Native, a.Source
	if err := w.limitNew(ctx, d.NamespaceID); err != nil {
		return err
	}
	return place.Backend.Deploy(ctx, d)
}

func (w *Worker) placeOf(p *store.Placement) (backend.Place, error) {
	if p.Device != "" {
		return backend.Place{}, fmt.Errorf("target %s has no device %s by itself: place the function on all that it has", p.Target, p.Device)
	}
	return w.place(p.Target)
}

func (w *Worker) artifact(image string) (*artifact.Artifact, error) {
	a, err := w.cfg.Artifacts.Get(artifact.DigestOf(image))
	if err != nil {
		return nil, fmt.Errorf("load artifact %s: %w", image, err)
	}
	return a, nil
}

// deployFused deploys placements of functions that are members of one program: all, or none.
func (w *Worker) deployFused(ctx context.Context, ps []*store.Placement) error {
	ctx, cancel := context.WithTimeout(ctx, deployLimit)
	defer cancel()
	place, err := w.placeOf(ps[0])
	if err != nil {
		return err
	}
	fuser, ok := place.Backend.(backend.Fuser)
	if !ok {
		return errors.New("it runs no fused programs")
	}
	fused := ps[0].Function.Fused
	a, err := w.artifact(fused.Artifact)
	if err != nil {
		return err
	}
	program := backend.Fused{BPF: a.BPF, Spec: a.Manifest.Spec}
	for _, m := range fused.Members {
		program.Members = append(program.Members, backend.FusedMember{Name: m.Name, Workload: m.Workload})
	}
	for _, p := range ps {
		d, err := deployment(p.Function, place)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Function.Name, err)
		}
		if err := w.limitNew(ctx, d.NamespaceID); err != nil {
			return err
		}
		program.Serving = append(program.Serving, d)
	}
	return fuser.DeployFused(ctx, program)
}

// programs groups those placements that are to be deployed together and do not serve yet.
func programs(ps []*store.Placement, running backend.Running) [][]*store.Placement {
	var groups [][]*store.Placement
	for _, p := range ps {
		f := p.Function
		if f.Fused == nil || p.Target != api.TargetNIC || running.Serves(p.Target, f.Workload, f.Revision) {
			continue
		}
		at := slices.IndexFunc(groups, func(g []*store.Placement) bool { return g[0].Function.Fused.Equal(f.Fused) })
		if at < 0 {
			groups, at = append(groups, nil), len(groups)
		}
		groups[at] = append(groups[at], p)
	}
	return groups
}

// deployment is what a place is to run, without the object files.
func deployment(f *store.Function, p backend.Place) (backend.Deployment, error) {
	services, err := resolve(f.Spec.Services, p)
	return backend.Deployment{
		Namespace: f.Namespace, NamespaceID: f.NamespaceID, Name: f.Name, Workload: f.Workload, Revision: f.Revision, Spec: f.Spec, Services: services,
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

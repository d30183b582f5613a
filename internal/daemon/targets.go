package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/backend/nics"
	"github.com/lambdanic/lambdanic/internal/backend/process"
	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/limits"
)

// targets make the targets of a node. A new target takes a package and a line here.
var targets = []func(*Config) backend.Target{
	func(c *Config) backend.Target { return nics.New(c.site(api.TargetNIC), c.NIC) },
	func(c *Config) backend.Target { return process.NewTarget(c.site(api.TargetProcess)) },
}

func (c *Config) site(t api.Target) backend.Site {
	return backend.Site{Instance: c.Instance, RunDir: filepath.Join(c.Run, string(t)), Log: c.Log}
}

// openPlaces brings up the places that run lambdas here.
func (d *Daemon) openPlaces(ctx context.Context) (places []backend.Place, err error) {
	for _, newTarget := range targets {
		t := newTarget(&d.cfg)
		place, err := t.Up(ctx)
		if err != nil {
			return nil, err
		}
		d.targets = append(d.targets, t)
		if place.Backend == nil {
			d.cfg.Log.Warn("lambdas do not run on a target", "target", t.Name(), "because", place.Reason)
		}
		places = append(places, place)
	}
	return places, nil
}

func (d *Daemon) closePlaces() error {
	var errs []error
	for _, t := range d.targets {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}

// tend watches over the places that may get lost, until ctx ends.
func (d *Daemon) tend(ctx context.Context, spawn func(func())) {
	for _, t := range d.targets {
		if tender, ok := t.(backend.Tender); ok {
			spawn(func() { tender.Tend(ctx, d.replace(t.Name())) })
		}
	}
}

func (d *Daemon) replace(t api.Target) backend.Replace {
	return func(ctx context.Context, up func(context.Context) (backend.Place, error)) error {
		if err := d.worker.Replace(ctx, t, up); err != nil {
			return err
		}
		return d.manager.Recover(ctx)
	}
}

// demux finds the program of a target that hands packets over to ikernels.
func (d *Daemon) demux(id ebpf.ProgramID) (*demux.Root, error) {
	for _, t := range d.targets {
		sharing, ok := t.(backend.Demultiplexing)
		if !ok {
			continue
		}
		if r, err := sharing.Demux(id); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// limits are what namespaces may do on the node; nil: no target has any at the moment.
func (d *Daemon) limits() *limits.Limits {
	for _, t := range d.targets {
		if sharing, ok := t.(backend.Demultiplexing); ok {
			return sharing.Limits()
		}
	}
	return nil
}

// counters reads what each device of the node counted for all lambdas together, by its name.
func (d *Daemon) counters() (map[string][]backend.Counter, error) {
	all := make(map[string][]backend.Counter)
	for _, t := range d.targets {
		counting, ok := t.(backend.Counting)
		if !ok {
			continue
		}
		counters, err := counting.Counters()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, counters)
	}
	return all, nil
}

// dropPlaces ends all places of an instance whose daemon is gone.
func dropPlaces(ctx context.Context, p Paths) error {
	var errs []error
	c := Config{Paths: p, Log: discard}
	for _, newTarget := range targets {
		errs = append(errs, newTarget(&c).Down(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take down instance %s: %w", p.Instance, err)
	}
	return nil
}

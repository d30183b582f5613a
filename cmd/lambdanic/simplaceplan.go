package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lambdanic/lambdanic/internal/placement"
	"github.com/lambdanic/lambdanic/sim/cluster"
)

// placePlan is applications that are to be placed on a cluster.
type placePlan struct {
	state       *placement.State
	deployments []*placement.Deployment
	kept        map[placedName]bool
	how         cluster.How
	explain     string // "": nothing
	decisions   map[placedName]placement.Decision
}

// placedName is a microservice's.
type placedName struct{ app, service string }

func (n placedName) String() string { return n.app + "/" + n.service }

// newPlacePlan adds applications to a cluster, with what was placed before on its nodes. Microservices are gone that were placed before, and are in
// none of the applications any more.
func newPlacePlan(topo *placement.Topology, apps []*placement.App, before *placeResult) (p *placePlan, gone []string, err error) {
	p = &placePlan{state: placement.NewState(topo), kept: make(map[placedName]bool), decisions: make(map[placedName]placement.Decision)}
	for i := range before.Apps {
		was := &before.Apps[i]
		at := slices.IndexFunc(apps, func(a *placement.App) bool { return a.Name == was.Name })
		if at < 0 {
			return nil, nil, fmt.Errorf("application %q was placed: give its file too, which says what it takes", was.Name)
		}
		held, missing, err := hold(topo, apps[at], was)
		if err != nil {
			return nil, nil, fmt.Errorf("application %q: %w", was.Name, err)
		}
		apps[at] = held
		gone = append(gone, missing...)
	}
	for _, app := range apps {
		d, err := p.state.Add(app)
		if err != nil {
			return nil, nil, err
		}
		p.deployments = append(p.deployments, d)
		p.keep(d, before)
	}
	if broken := p.state.Check(); len(broken) > 0 {
		return nil, nil, fmt.Errorf("what was placed does not fit any more: %w", joined(broken))
	}
	return p, gone, nil
}

// hold pins microservices to where they were placed.
func hold(topo *placement.Topology, app *placement.App, was *placedApp) (held *placement.App, gone []string, err error) {
	services := slices.Clone(app.Services)
	for i := range was.Services {
		s := &was.Services[i]
		at, ok := app.ID(s.Name)
		if !ok {
			gone = append(gone, placedName{was.Name, s.Name}.String())
			continue
		}
		if _, ok := topo.ID(s.Node); !ok {
			return nil, nil, fmt.Errorf("microservice %q was on node %q, which the topology does not have: take the microservice out of the earlier result to place it again", s.Name, s.Node)
		}
		if pin := app.Services[at].Node; pin != "" && pin != s.Node {
			return nil, nil, fmt.Errorf("microservice %q was on node %q, and is pinned to %q: take the microservice out of the earlier result to place it again", s.Name, s.Node, pin)
		}
		services[at].Node = s.Node
	}
	held, err = placement.NewApp(app.Name, services, app.Edges)
	return held, gone, err
}

// keep puts what was placed where it was.
func (p *placePlan) keep(d *placement.Deployment, before *placeResult) {
	for i := range before.Apps {
		if before.Apps[i].Name != d.App.Name {
			continue
		}
		for _, s := range before.Apps[i].Services {
			if at, ok := d.App.ID(s.Name); ok {
				id, _ := p.state.Topology().ID(s.Node)
				p.state.Place(d, at, id)
				p.kept[placedName{d.App.Name, s.Name}] = true
			}
		}
	}
}

// explains says what is to be explained.
func (p *placePlan) explains(name string) error {
	p.explain = name
	if name == "" || name == explainAll {
		return nil
	}
	var all []string
	for _, d := range p.deployments {
		for i := range d.App.Services {
			if p.explained(placedName{d.App.Name, d.App.Services[i].Name}) {
				return nil
			}
			all = append(all, d.App.Services[i].Name)
		}
	}
	return fmt.Errorf("--explain=%s: there is no such microservice: %s", name, strings.Join(all[:min(len(all), mostNamed)], ", "))
}

// mostNamed bounds lists in errors.
const mostNamed = 20

func (p *placePlan) explained(n placedName) bool {
	return p.explain == explainAll || p.explain == n.service || p.explain == n.String()
}

// place places what is not yet.
func (p *placePlan) place(ctx context.Context, progress func(done, all int)) error {
	for _, d := range p.deployments { // before any has a choice
		if err := p.state.Pin(d, p.options(d)); err != nil {
			return err
		}
	}
	for i, d := range p.deployments {
		progress(i, len(p.deployments))
		if err := p.placeOne(ctx, d); err != nil {
			return err
		}
	}
	if broken := p.state.Check(); len(broken) > 0 {
		return joined(broken)
	}
	return nil
}

func (p *placePlan) placeOne(ctx context.Context, d *placement.Deployment) error {
	if p.how.Policy != cluster.HCM {
		return p.how.Place(ctx, p.state, d)
	}
	err := p.state.HCM(d, p.options(d))
	if err == nil {
		return nil
	}
	if why := p.state.Shortage(d); why != "" {
		return fmt.Errorf("app %q: %w: %s", d.App.Name, placement.ErrInfeasible, why) // which no policy can help
	}
	return fmt.Errorf("%w; hcm moves nothing out of the way: try --policy anneal, or ilp, which may find room", err)
}

// options have HCM say why.
func (p *placePlan) options(d *placement.Deployment) placement.Options {
	return placement.Options{Explain: func(e placement.Decision) { p.decisions[placedName{d.App.Name, e.Service}] = e }}
}

func joined(broken []placement.Violation) error {
	var all []error
	for _, v := range broken[:min(len(broken), mostNamed)] {
		all = append(all, v)
	}
	return errors.Join(all...)
}

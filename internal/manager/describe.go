package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// List describes the functions of a namespace, all where it is "".
func (m *Manager) List(ctx context.Context, namespace string) ([]api.Function, error) {
	return m.describe(ctx, m.wanted(namespace))
}

// Describe describes one function.
func (m *Manager) Describe(ctx context.Context, namespace, name string) (*api.Function, error) {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	f, ok := m.Route(namespace, name)
	if !ok {
		return nil, fmt.Errorf("%w: %s/%s", store.ErrNotFound, namespace, name)
	}
	described, err := m.describe(ctx, []store.Function{*f})
	if err != nil {
		return nil, err
	}
	return &described[0], nil
}

func (m *Manager) describe(ctx context.Context, functions []store.Function) ([]api.Function, error) {
	problems, err := m.problems(ctx)
	if err != nil && !errors.Is(err, store.ErrAway) { // then what runs says enough
		return nil, err
	}
	running, err := m.Node.Running(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]api.Function, len(functions))
	for i := range functions {
		f := &functions[i]
		out[i] = describe(f, problems[revision{f.Workload, f.Revision}], running, m.Node.Available(f.Target))
		out[i].Fused = m.fusedWith(f)
	}
	return out, nil
}

type revision struct{ workload, revision uint32 }

// problems says why revisions do not serve on nodes that are to run them.
func (m *Manager) problems(ctx context.Context) (map[revision]string, error) {
	all := make(map[revision]string)
	for _, node := range m.Nodes {
		statuses, err := m.Store.Statuses(ctx, node)
		if err != nil {
			return nil, err
		}
		for _, s := range statuses {
			if s.State != api.StateError {
				continue
			}
			why := s.Reason
			if len(m.Nodes) > 1 {
				why = fmt.Sprintf("node %s: %s", node, why)
			}
			all[revision{s.Workload, s.Revision}] = why
		}
	}
	return all, nil
}

// describe describes a function: what the store wants, a node's problem with it, and what this node's backends show, which takes
// precedence. Missing says why its target has no backend.
func describe(f *store.Function, problem string, running backend.Running, missing error) api.Function {
	d := api.Function{
		Name: f.Name, Namespace: f.Namespace, Image: f.Artifact, EnvVars: f.Env, Labels: f.Labels, Annotations: f.Annotations,
		Replicas: 1, CreatedAt: f.Created, UpdatedAt: f.Updated, Workload: f.Workload, Revision: f.Revision,
		Target: f.Target, Refused: f.Refused, Memory: f.Memory, Spec: f.Spec, State: api.StateError, Reason: cmp.Or(problem, f.Later),
	}
	s, ok := running[f.Target][f.Workload]
	if missing != nil {
		d.Reason = missing.Error()
		return d
	}
	if !ok {
		d.Reason = cmp.Or(d.Reason, "target "+string(f.Target)+" does not run it: deploy it again")
		return d
	}
	d.State, d.AvailableReplicas, d.Endpoint = api.StateReady, 1, s.Endpoint
	d.InvocationCount = float64(s.Stats.Requests)
	if problem != "" {
		d.State = api.StateError
	}
	if s.Revision != f.Revision {
		d.State = api.StateError
		d.Reason = cmp.Or(d.Reason, fmt.Sprintf("revision %d serves instead: deploy it again", s.Revision))
	}
	why := s.Stats.FaultsBy.Explain()
	if why == "" {
		why = s.Fault // a process of an earlier version says no more
	} else if s.Fault != "" {
		why += "; at last: " + s.Fault
	}
	if why != "" {
		d.Reason = cmp.Or(d.Reason, "requests made it fail: "+why)
	}
	return d
}

// Stats returns every function's counters.
func (m *Manager) Stats(ctx context.Context) ([]api.FunctionStats, error) {
	running, err := m.Node.Running(ctx)
	if err != nil {
		return nil, err
	}
	stats := []api.FunctionStats{}
	for _, f := range m.wanted("") {
		if s, ok := running[f.Target][f.Workload]; ok {
			stats = append(stats, api.FunctionStats{
				Name: f.Name, Namespace: f.Namespace, Workload: f.Workload, Revision: s.Revision, Target: f.Target, Stats: s.Stats,
			})
		}
	}
	return stats, nil
}

// Targets says for each target of this node whether it can run lambdas, and how many it runs.
func (m *Manager) Targets(ctx context.Context) ([]api.NodeTarget, error) { return m.Node.Targets(ctx) }

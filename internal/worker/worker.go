// Package worker owns the places of one node where lambdas run. It watches the node's placements in the store, carries them out,
// and reports.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// Artifacts holds compiled lambdas by digest.
type Artifacts interface {
	Get(digest string) (*artifact.Artifact, error)
}

// Worker runs one node: by Sync, and from then on by what Start began.
type Worker struct {
	cfg     Config
	turn    *semaphore.Weighted  // of 1: changes of the node are made one at a time
	limited map[uint32]api.Quota // in force, by the numbers of namespaces; changed by whose turn it is
	synced  chan struct{}        // closed by the first Sync

	mu     sync.RWMutex
	places []backend.Place
}

// Config holds what a worker works with.
type Config struct {
	Node      string // its name
	Store     *store.Store
	Artifacts Artifacts
	Places    []backend.Place
	Budget    api.Budget
	Log       *slog.Logger
}

// New returns a worker.
func New(cfg Config) *Worker {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Worker{cfg: cfg, turn: semaphore.NewWeighted(1), synced: make(chan struct{}), places: slices.Clone(cfg.Places)}
}

// lock waits for its turn to change the node.
func (w *Worker) lock(ctx context.Context) error {
	if err := w.turn.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for another change of node %s to end: %w", w.cfg.Node, err)
	}
	return nil
}

func (w *Worker) unlock() { w.turn.Release(1) }

// Node is the name of the node.
func (w *Worker) Node() string { return w.cfg.Node }

// Places returns the node's places.
func (w *Worker) Places() []backend.Place {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return slices.Clone(w.places)
}

// Replace replaces the node's backend of a target by the one that up makes, while nothing is deployed. Sync brings back what ran there.
func (w *Worker) Replace(ctx context.Context, t api.Target, up func(context.Context) (backend.Place, error)) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	w.setPlace(backend.Place{Target: t, Reason: "it is being brought up again"})
	place, err := up(ctx)
	w.setPlace(place)
	return err
}

func (w *Worker) setPlace(p backend.Place) {
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

// Running asks every backend what it runs.
func (w *Worker) Running(ctx context.Context) (backend.Running, error) {
	running := make(backend.Running)
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

// Accounts asks the backends that count for namespaces what each namespace's lambdas counted, by the namespace's number. It is nil where
// none counts at present.
func (w *Worker) Accounts(ctx context.Context) (map[uint32]backend.Stats, error) {
	var list []backend.Accounting
	for _, p := range w.Places() {
		if a, ok := p.Backend.(backend.Accounting); ok {
			list = append(list, a)
		}
	}
	accounts, err := backend.SumAccounts(ctx, list)
	if err != nil {
		return nil, fmt.Errorf("read what namespaces counted: %w", err)
	}
	return accounts, nil
}

// Limit has the node's backends keep the namespaces to the quotas that the store has.
func (w *Worker) Limit(ctx context.Context) error {
	if err := w.lock(ctx); err != nil {
		return err
	}
	defer w.unlock()
	return w.limit(ctx)
}

func (w *Worker) limit(ctx context.Context) error {
	list, err := w.cfg.Store.Namespaces(ctx)
	if err != nil {
		return err
	}
	limits := backend.Limits{
		Budget: w.cfg.Budget, Quotas: make(map[uint32]api.Quota, len(list)), Keys: map[uint32]api.Keys{}, Networks: map[api.Network]uint32{},
	}
	for _, n := range list {
		limits.Quotas[n.Number] = n.Quota
		keys := api.Keys{Required: n.Keys.Required}
		for _, k := range n.Keys.Keys {
			keys.Keys = append(keys.Keys, k.Key)
		}
		limits.Keys[n.Number] = keys
		for _, network := range n.Networks {
			limits.Networks[network] = n.Number
		}
	}
	var errs []error
	for _, p := range w.Places() {
		if l, ok := p.Backend.(backend.Limiting); ok {
			errs = append(errs, l.Limit(ctx, limits))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	w.limited = limits.Quotas
	return nil
}

// limitNew gives a namespace its share of the budget, before its first lambda serves.
func (w *Worker) limitNew(ctx context.Context, namespace uint32) error {
	if _, ok := w.limited[namespace]; ok || w.cfg.Budget == (api.Budget{}) {
		return nil
	}
	return w.limit(ctx)
}

// Targets says of each target whether it can run lambdas, and how many it runs.
func (w *Worker) Targets(ctx context.Context) ([]api.NodeTarget, error) {
	running, err := w.Running(ctx)
	if err != nil {
		return nil, err
	}
	var targets []api.NodeTarget
	for _, p := range w.Places() {
		targets = append(targets, api.NodeTarget{
			Target: p.Target, Available: p.Backend != nil, Reason: p.Reason, Detail: p.Detail, Interfaces: p.Interfaces, Lambdas: len(running[p.Target]),
		})
	}
	return targets, nil
}

// Endpoint says where λ-RPC requests for a workload on a target go.
func (w *Worker) Endpoint(t api.Target, workload uint32) (netip.AddrPort, bool) {
	p, err := w.place(t)
	if err != nil {
		return netip.AddrPort{}, false
	}
	return p.Backend.Endpoint(workload)
}

// Asker asks a target's lambdas without a link; nil where that is impossible. It is for the gateway of the same process, which looks it up
// for each request: asking through the worker would cost more than most lambdas do.
func (w *Worker) Asker(t api.Target) backend.Asker {
	p, err := w.place(t)
	if err != nil {
		return nil
	}
	a, _ := p.Backend.(backend.Asker)
	return a
}

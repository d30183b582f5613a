package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// A change is the caller's until its first write to the store. From there on it has contexts of its own, for a caller who hangs up
// would leave store, routes and backends in disagreement. That the caller has gone ends a deploy in one place only: before a
// target begins with the candidate, where all of it is taken back.

const (
	writeLimit  = 10 * time.Second // for one write to the store
	settleLimit = 30 * time.Second // for writing again where it is not known what the store has
	stopLimit   = time.Minute      // for backends to end what they run; they have shorter limits for what they wait for
	mendLimit   = 5 * time.Minute  // for all functions of the node
)

// lock waits for its turn to change something.
func (m *Manager) lock(ctx context.Context) error {
	select {
	case m.changes <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for another change to end: %w", ctx.Err())
	}
}

func (m *Manager) unlock() { <-m.changes }

// Close waits for the change that is being made, as long as ctx lasts, and keeps all others from beginning: what they would change is
// about to close.
func (m *Manager) Close(ctx context.Context) error { return m.lock(ctx) }

// begin waits for its turn to change a function, and has what an earlier change left over settled and unused artifacts deleted first.
func (m *Manager) begin(ctx context.Context) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	if m.unsettled {
		_ = m.mend(ctx, errors.New("an earlier change was left unfinished"))
	}
	if err := ctx.Err(); err != nil {
		m.unlock()
		return fmt.Errorf("wait for another change to end: %w", err)
	}
	m.collect(ctx)
	return nil
}

// mend brings store, routes and backends together again after a step of a change failed. Where it cannot, the next change tries
// again, and the error is the step's.
func (m *Manager) mend(ctx context.Context, failed error) error {
	ctx, cancel := own(ctx, mendLimit)
	defer cancel()
	err := m.recover(ctx)
	m.unsettled = err != nil
	m.Log.Warn("a change needed mending", "because", failed, "error", err)
	if err != nil {
		return failed
	}
	return nil
}

// own is a context that does not end when the caller hangs up.
func own(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// write makes a write to the store that may be made twice, and makes it again while it is not known whether the store has it.
func write(ctx context.Context, change func(context.Context) error) error {
	once := func() (struct{}, error) {
		ctx, cancel := own(ctx, writeLimit)
		defer cancel()
		err := change(ctx)
		if err != nil && !errors.Is(err, store.ErrUnknown) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = 20 * time.Millisecond
	_, err := backoff.Retry(context.WithoutCancel(ctx), once, backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(settleLimit))
	return err
}

// deploy makes functions serve by apply, all of them or none.
func (m *Manager) deploy(ctx context.Context, fs []store.Function, apply func([]*store.Function) error) ([]api.Function, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.unlock()
	if err := m.Room(); err != nil {
		return nil, fmt.Errorf("deploy: %w", err)
	}
	var cs []*store.Function
	err := write(ctx, func(ctx context.Context) (err error) {
		cs, err = m.Store.ProposeAll(ctx, fs)
		return err
	})
	if err != nil {
		m.unsettled = m.unsettled || errors.Is(err, store.ErrUnknown)
		return nil, err
	}
	m.Step("deploy: proposed")
	if err := apply(cs); err != nil {
		return nil, m.abandon(ctx, cs, err)
	}
	m.Step("deploy: applied")
	if err := write(ctx, func(ctx context.Context) error { return m.Store.Promote(ctx, cs...) }); err != nil {
		m.unsettled = true
		return nil, fmt.Errorf("%w: it serves, and the next change or `lambdanic up` records it", err)
	}
	m.Step("deploy: promoted")
	for _, c := range cs {
		m.setRoute(c)
	}
	var described []store.Function
	for _, c := range cs {
		m.settle(ctx, c)
		described = append(described, *c)
	}
	ctx, cancel := own(ctx, writeLimit)
	defer cancel()
	return m.describe(ctx, described)
}

// settle does what is left to do for a function that serves a new revision.
func (m *Manager) settle(ctx context.Context, c *store.Function) {
	m.Log.Info("deployed", "function", c.Key(), "revision", c.Revision, "target", c.Target)
	for _, r := range c.Refused {
		m.Log.Warn("a target does not run a function", "function", c.Key(), "revision", c.Revision, "target", r.Target, "because", r.Reason)
	}
	if err := m.retire(ctx, c.Workload, c.Target); err != nil {
		// The new revision serves all the same.
		_ = m.mend(ctx, fmt.Errorf("end %s on its earlier target: %w", c.Key(), err))
	}
	m.Step("deploy: retired")
	m.report(ctx, c, store.Status{Revision: c.Revision, State: api.StateReady})
	m.Step("deploy: reported")
}

// report records a status. Nothing depends on it.
func (m *Manager) report(ctx context.Context, c *store.Function, status store.Status) {
	err := write(ctx, func(ctx context.Context) error { return m.Store.PutStatus(ctx, c.Namespace, c.Name, status) })
	if err != nil {
		m.Log.Warn("could not record a status", "function", c.Key(), "error", err)
	}
}

// apply makes a candidate serve: where the revision before it does, if there is one.
func (m *Manager) apply(ctx context.Context, c *store.Function) error {
	if served, ok := m.Route(c.Namespace, c.Name); ok {
		return m.Worker.Replace(ctx, c, served)
	}
	return m.Worker.Apply(ctx, c)
}

// abandon takes back candidates that no target took: first from the backends, which may have taken them in part, so that the
// store never forgets what still runs.
func (m *Manager) abandon(ctx context.Context, cs []*store.Function, why error) error {
	m.Step("deploy: refused")
	var failed error
	for _, c := range cs {
		failed = errors.Join(failed, m.withdraw(ctx, c, why))
	}
	if err := write(ctx, func(ctx context.Context) error { return m.Store.Abandon(ctx, cs...) }); err != nil {
		m.unsettled = true
		return errors.Join(why, err)
	}
	m.Step("deploy: abandoned")
	for _, c := range cs {
		if _, serves := m.Route(c.Namespace, c.Name); !serves && failed == nil { // else mend frees it, once nothing runs it
			failed = m.free(ctx, c.Workload)
		}
	}
	if failed != nil {
		failed = m.mend(ctx, fmt.Errorf("take a refused revision back: %w", failed))
	}
	for _, c := range cs { // after mend, which records statuses too
		if served, ok := m.Route(c.Namespace, c.Name); ok {
			m.report(ctx, c, store.Status{
				Revision: served.Revision, State: api.StateReady,
				Reason: fmt.Sprintf("revision %d was refused: %v", c.Revision, why),
			})
		}
	}
	return errors.Join(why, failed)
}

// withdraw has the backends run what they did before a candidate.
func (m *Manager) withdraw(ctx context.Context, c *store.Function, why error) error {
	m.Log.Warn("refused", "function", c.Key(), "revision", c.Revision, "because", why)
	served, ok := m.Route(c.Namespace, c.Name)
	if !ok {
		return m.retire(ctx, c.Workload, "")
	}
	keep, cancel := own(ctx, stopLimit)
	defer cancel()
	return errors.Join(m.Worker.Keep(keep, served), m.retire(ctx, c.Workload, served.Target))
}

// Remove ends a function.
func (m *Manager) Remove(ctx context.Context, namespace, name string) error {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.unlock()
	f, err := m.delete(ctx, namespace, name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.routes, f.Key())
	m.mu.Unlock()
	m.Step("remove: deleted")
	m.Log.Info("removed", "function", f.Key())
	if err := m.stop(ctx, f.Workload); err != nil {
		return m.mend(ctx, err)
	}
	return nil
}

// delete takes a function out of the store. Where an earlier try did so without an answer, what it was is in the routes.
func (m *Manager) delete(ctx context.Context, namespace, name string) (f *store.Function, err error) {
	unknown := false
	err = write(ctx, func(ctx context.Context) (err error) {
		f, err = m.Store.Delete(ctx, namespace, name)
		if unknown && errors.Is(err, store.ErrNotFound) {
			if served, ok := m.Route(namespace, name); ok {
				f, err = served, nil
			}
		}
		unknown = unknown || errors.Is(err, store.ErrUnknown)
		return err
	})
	m.unsettled = m.unsettled || errors.Is(err, store.ErrUnknown)
	return f, err
}

// stop ends a draining workload everywhere, and lets its index be used again.
func (m *Manager) stop(ctx context.Context, workload uint32) error {
	if err := m.retire(ctx, workload, ""); err != nil {
		return err
	}
	m.Step("remove: stopped")
	if err := m.free(ctx, workload); err != nil {
		return err
	}
	m.Step("remove: freed")
	return nil
}

func (m *Manager) retire(ctx context.Context, workload uint32, keep api.Target) error {
	ctx, cancel := own(ctx, stopLimit)
	defer cancel()
	return m.Worker.Retire(ctx, workload, keep)
}

func (m *Manager) free(ctx context.Context, workload uint32) error {
	return write(ctx, func(ctx context.Context) error { return m.Store.Free(ctx, workload) })
}

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// A change has the caller's context until its first write to the store. From there on it has its own contexts, as a caller who hangs up
// would leave store, routes and backends in disagreement. A caller who has gone ends a deploy in one place only: before a
// target begins with the candidate, where the whole deploy is taken back.

const (
	readLimit   = 10 * time.Second // for reads of the store
	settleLimit = 30 * time.Second // for repeating a write whose result is unknown
	answerLimit = 10 * time.Minute // for nodes to answer; their own waits have shorter limits
	mendLimit   = 10 * time.Minute // for all functions of the node
)

// lock waits for its turn to change something.
func (m *Manager) lock(ctx context.Context) error {
	if err := m.changes.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("wait for another change to end: %w", err)
	}
	return nil
}

func (m *Manager) unlock() { m.changes.Release(1) }

// Close waits for the change in progress, as long as ctx lasts, and keeps all others from beginning: what they would change is
// about to close.
func (m *Manager) Close(ctx context.Context) error { return m.lock(ctx) }

// begin waits for its turn to change a function. First it settles what an earlier change left over.
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
	return nil
}

// mend makes store, routes and backends agree again after a step of a change failed. Where it cannot, the next change tries
// again, and the error is the step's.
func (m *Manager) mend(ctx context.Context, failed error) error {
	ctx, cancel := own(ctx, mendLimit)
	defer cancel()
	err := m.Store.Fence(ctx)
	if err == nil {
		err = m.recover(ctx)
	}
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

// write makes a repeatable write to the store, whether the caller hangs up or not.
func write(ctx context.Context, change func(context.Context) error) error {
	return store.Insist(context.WithoutCancel(ctx), settleLimit, change)
}

// deploy makes functions serve as planned, all of them or none.
func (m *Manager) deploy(ctx context.Context, fs []store.Function, planned func() (*plan, error)) ([]api.Function, error) {
	if err := m.begin(ctx); err != nil {
		return nil, err
	}
	defer m.unlock()
	var collecting sync.WaitGroup
	collecting.Go(func() { m.collect(ctx) }) // what this deploy uses is in use, claimed, or was built just now
	defer collecting.Wait()
	if err := m.checkQuotas(fs); err != nil { // nothing was written so far, and no other change comes in between
		return nil, err
	}
	if err := m.checkStages(fs); err != nil {
		return nil, err
	}
	p, err := planned()
	if err != nil {
		return nil, err
	}
	if m.Room() != nil {
		collecting.Wait() // which may free space
		if err := m.Room(); err != nil {
			return nil, fmt.Errorf("deploy: %w", err)
		}
	}
	for i := range fs {
		fs[i].Target = p.targets[0]
	}
	var cs []*store.Function
	err = write(ctx, func(ctx context.Context) (err error) {
		cs, err = m.Store.ProposeAll(ctx, fs)
		return err
	})
	if err != nil {
		m.unsettled = m.unsettled || errors.Is(err, store.ErrUnknown)
		return nil, err
	}
	m.learnNamespaces(cs)
	m.Step("deploy: proposed")
	if err := m.try(ctx, cs, p); err != nil {
		return nil, m.abandon(ctx, cs, err)
	}
	m.Step("deploy: applied")
	collecting.Wait()        // before the replaced revision's artifact is no longer in use
	elsewhere := m.serve(cs) // before the nodes end what served
	if err := write(ctx, func(ctx context.Context) error { return m.Store.Promote(ctx, cs...) }); err != nil {
		m.unsettled = true
		return nil, fmt.Errorf("%w: it serves, and the next change or `lambdanic up` records it", err)
	}
	m.Step("deploy: promoted")
	var described []store.Function
	for _, c := range cs {
		m.logDeployed(c)
		if elsewhere[c.Key()] {
			if err := m.awaitReady(ctx, c); err != nil {
				// The new revision serves all the same.
				_ = m.mend(ctx, fmt.Errorf("end %s on its earlier target: %w", c.Key(), err))
			}
		}
		described = append(described, *c)
	}
	m.Step("deploy: retired")
	ctx, cancel := own(ctx, readLimit)
	defer cancel()
	return m.describe(ctx, described)
}

// serve sends requests to candidates, and tells which of these served elsewhere, or may have begun to.
func (m *Manager) serve(cs []*store.Function) (elsewhere map[string]bool) {
	elsewhere = make(map[string]bool)
	for _, c := range cs {
		before, ok := m.Route(c.Namespace, c.Name)
		elsewhere[c.Key()] = ok && before.Target != c.Target || len(c.Refused) > 0
		m.setRoute(c)
	}
	return elsewhere
}

func (m *Manager) logDeployed(c *store.Function) {
	m.Log.Info("deployed", "function", c.Key(), "revision", c.Revision, "target", c.Target)
	for _, r := range c.Refused {
		m.Log.Warn("a target does not run a function", "function", c.Key(), "revision", c.Revision, "target", r.Target, "because", r.Reason)
	}
}

// awaitReady waits until the nodes of a function serve it, and nothing of it elsewhere.
func (m *Manager) awaitReady(ctx context.Context, f *store.Function) error {
	ctx, cancel := own(ctx, answerLimit)
	defer cancel()
	statuses, err := m.Store.Await(ctx, f)
	if err != nil {
		return err
	}
	return refusal(f, statuses)
}

// refusal joins the nodes' reasons for not serving a function.
func refusal(f *store.Function, statuses []store.Status) error {
	var errs []error
	for i, s := range statuses {
		if s.State == api.StateReady {
			continue
		}
		err := errors.New(s.Reason)
		if len(statuses) > 1 {
			err = fmt.Errorf("node %s: %w", f.Nodes[i], err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// abandon takes back candidates that no target took. What of them still runs keeps its workload ID.
func (m *Manager) abandon(ctx context.Context, cs []*store.Function, why error) error {
	m.Step("deploy: refused")
	for _, c := range cs {
		m.Log.Warn("refused", "function", c.Key(), "revision", c.Revision, "because", why)
		c.Later = fmt.Sprintf("revision %d was refused: %s", c.Revision, strings.TrimPrefix(why.Error(), ErrRefused.Error()+": "))
	}
	if err := write(ctx, func(ctx context.Context) error { return m.Store.Abandon(ctx, cs...) }); err != nil {
		m.unsettled = true
		return errors.Join(why, err)
	}
	m.Step("deploy: abandoned")
	var failed error
	for _, c := range cs {
		if served, ok := m.Route(c.Namespace, c.Name); ok {
			route := *served
			route.Later = c.Later
			m.setRoute(&route)
			failed = errors.Join(failed, m.awaitReady(ctx, served))
		} else {
			failed = errors.Join(failed, m.release(ctx, c.Workload))
		}
	}
	if failed != nil {
		failed = m.mend(ctx, fmt.Errorf("take a refused revision back: %w", failed))
	}
	return errors.Join(why, failed)
}

// Remove ends a function.
func (m *Manager) Remove(ctx context.Context, namespace, name string) error {
	namespace = cmp.Or(namespace, api.DefaultNamespace)
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.unlock()
	m.collect(ctx)
	f, err := m.delete(ctx, namespace, name)
	if err != nil {
		return err
	}
	m.mu.Lock()
	delete(m.routes, f.Key())
	m.mu.Unlock()
	m.Step("remove: deleted")
	m.Log.Info("removed", "function", f.Key())
	err = m.awaitEnd(ctx, f.Workload)
	if err == nil {
		m.Step("remove: stopped")
		err = m.free(ctx, f.Workload)
	}
	if err != nil {
		return m.mend(ctx, err)
	}
	m.Step("remove: freed")
	return nil
}

// delete takes a function out of the store. Where an earlier try deleted it without an answer, the routes still have the function.
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

// release frees a draining workload once no node runs it.
func (m *Manager) release(ctx context.Context, workload uint32) error {
	if err := m.awaitEnd(ctx, workload); err != nil {
		return err
	}
	return m.free(ctx, workload)
}

// awaitEnd waits until no node runs a workload.
func (m *Manager) awaitEnd(ctx context.Context, workload uint32) error {
	ctx, cancel := own(ctx, answerLimit)
	defer cancel()
	return m.Store.AwaitEnd(ctx, m.Nodes, workload)
}

// free lets the index of a workload that no node runs be used again.
func (m *Manager) free(ctx context.Context, workload uint32) error {
	return write(ctx, func(ctx context.Context) error { return m.Store.Free(ctx, workload) })
}

package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// tripwire counts events of the store and the backends, and makes something happen at one of them.
type tripwire struct {
	clientv3.KV

	mu        sync.Mutex
	count, at int
	happen    func(what string) error
	what      string // the event at which it happened
}

// arm has something happen at an event from now on, 0 for nothing.
func (w *tripwire) arm(at int, happen func(string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count, w.at, w.happen, w.what = 0, at, happen, ""
}

// tripped says at which event, and of how many.
func (w *tripwire) tripped() (string, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.what, w.count
}

func (w *tripwire) event(what string) error {
	w.mu.Lock()
	w.count++
	if w.count != w.at {
		w.mu.Unlock()
		return nil
	}
	w.what = what
	happen := w.happen
	w.mu.Unlock()
	return happen(what)
}

func (w *tripwire) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err := w.event("read"); err != nil {
		return nil, err
	}
	return w.KV.Get(ctx, key, opts...)
}

func (w *tripwire) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if err := w.event("read"); err != nil {
		return clientv3.OpResponse{}, err
	}
	return w.KV.Do(ctx, op)
}

func (w *tripwire) Txn(ctx context.Context) clientv3.Txn { return &wiredTxn{w.KV.Txn(ctx), w} }

type wiredTxn struct {
	clientv3.Txn
	wire *tripwire
}

func (t *wiredTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

func (t *wiredTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *wiredTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *wiredTxn) Commit() (*clientv3.TxnResponse, error) {
	if err := t.wire.event("before commit"); err != nil {
		return nil, err
	}
	r, err := t.Txn.Commit()
	return r, errors.Join(err, t.wire.event("after commit"))
}

// What may happen at any event of a change. A caller who hangs up cancels the change's context.
var mishaps = map[string]func(hangUp func(), what string) error{
	"the caller hangs up":              func(hangUp func(), _ string) error { hangUp(); return nil },
	"the store or backend fails once":  func(_ func(), what string) error { return fmt.Errorf("%s: lost", what) },
	"it fails and the caller hangs up": func(hangUp func(), what string) error { hangUp(); return fmt.Errorf("%s: lost", what) },
}

// Whatever happens at whichever event of a change, afterwards store, routes and backends agree, and all can be deployed and removed.
func TestMishapAtEachEvent(t *testing.T) {
	refuse := func(backend.Deployment) error { return errors.New("no") }
	second := Request{Name: "web", Image: image("1")}
	for name, change := range map[string]func(context.Context, *node) error{
		"new": func(ctx context.Context, n *node) error {
			return deployed(n.Deploy(ctx, Request{Name: "other", Image: image("1")}))
		},
		"replace": func(ctx context.Context, n *node) error { return deployed(n.Deploy(ctx, second)) },
		"move": func(ctx context.Context, n *node) error {
			moved := second
			moved.Targets = []api.Target{api.TargetProcess}
			return deployed(n.Deploy(ctx, moved))
		},
		"fuse": func(ctx context.Context, n *node) error {
			_, err := n.DeployFused(ctx, []Request{second, {Name: "other", Image: image("1")}})
			return err
		},
		"refused": func(ctx context.Context, n *node) error {
			n.nic.refuse, n.process.refuse = refuse, refuse
			defer func() { n.nic.refuse, n.process.refuse = nil, nil }()
			return deployed(n.Deploy(ctx, second))
		},
		"refused new": func(ctx context.Context, n *node) error {
			n.nic.refuse, n.process.refuse = refuse, refuse
			defer func() { n.nic.refuse, n.process.refuse = nil, nil }()
			return deployed(n.Deploy(ctx, Request{Name: "other", Image: image("1")}))
		},
		"remove": func(ctx context.Context, n *node) error { return n.Remove(ctx, "", "web") },
		"quota": func(ctx context.Context, n *node) error {
			_, err := n.SetQuota(ctx, "tenant", api.QuotaChange{Lambdas: api.SetLimit(3)})
			return err
		},
		"network": func(ctx context.Context, n *node) error {
			_, err := n.AddNetwork(ctx, "tenant", vlan100)
			return errors.Join(err, removeNetwork(ctx, n))
		},
		"forget": func(ctx context.Context, n *node) error {
			if _, err := n.SetQuota(ctx, "gone", api.QuotaChange{}); err != nil {
				return err
			}
			return n.RemoveNamespace(ctx, "gone")
		},
	} {
		touched := []string{"web"}
		if name == "new" || name == "fuse" || name == "refused new" {
			touched = append(touched, "other")
		}
		for mishap, happen := range mishaps {
			t.Run(name+"/"+mishap, func(t *testing.T) {
				t.Parallel() // it waits for its store's disk
				n, wire := openWired(t)
				for at := 1; ; at++ {
					mustDeploy(t, n, Request{Name: "web"})
					n.answered(t)
					ctx, cancel := context.WithCancel(t.Context())
					wire.arm(at, func(what string) error { return happen(cancel, what) })
					err := change(ctx, n)
					cancel()
					what, count := wire.tripped()
					wire.arm(0, nil)
					where := fmt.Sprintf("event %d, %s, after which the change says %v", at, what, err)
					checkAgreement(t, n, where)
					redo(t, n, where, touched)
					checkNamespaces(t, n, where) // what was unknown is known after the next change
					if count < at {
						break // it is done before
					}
				}
			})
		}
	}
}

func deployed(_ *api.Function, err error) error { return err }

// openWired is openNode with a tripwire.
func openWired(t *testing.T) (*node, *tripwire) {
	t.Helper()
	dir := shortdir.New(t)
	wire := new(tripwire)
	st := openStore(t, dir, func(kv clientv3.KV) clientv3.KV {
		wire.KV = kv
		return wire
	})
	n := openOn(t, dir, st, nil)
	event := func(_ context.Context, what string) error { return wire.event(what) }
	n.answered(t)
	n.nic.event, n.process.event = event, event
	return n, wire
}

// checkAgreement checks that exactly the functions that the store wants are routed and run.
func checkAgreement(t *testing.T, n *node, where string) {
	t.Helper()
	ctx := t.Context()
	stored, err := n.Store.List(ctx, "")
	candidates, err2 := n.Store.Candidates(ctx)
	draining, err3 := n.Store.Draining(ctx)
	running, err4 := n.Node.Running(ctx)
	if err := errors.Join(err, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	routed := n.wanted("")
	if len(candidates) != 0 || len(draining) != 0 || len(stored) != len(routed) {
		t.Fatalf("%s: candidates %v, draining %v, stored %v, routed %v", where, candidates, draining, stored, routed)
	}
	if slots := len(running[api.TargetNIC]) + len(running[api.TargetProcess]); slots != len(stored) {
		t.Fatalf("%s: %d slots for %d functions", where, slots, len(stored))
	}
	for i, f := range stored {
		if r := routed[i]; r.Key() != f.Key() || r.Workload != f.Workload || r.Revision != f.Revision || r.Target != f.Target {
			t.Fatalf("%s: stored %+v, routed %+v", where, f, r)
		}
		if s := running[f.Target][f.Workload]; s.Revision != f.Revision {
			t.Fatalf("%s: %s revision %d is stored, %d runs on %s", where, f.Key(), f.Revision, s.Revision, f.Target)
		}
	}
}

// checkNamespaces checks that the namespaces in memory are those of the store, each with a number of its own.
func checkNamespaces(t *testing.T, n *node, where string) {
	t.Helper()
	stored, err := n.Store.Namespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	inStore, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if known, err := json.Marshal(n.knownNamespaces()); err != nil || !bytes.Equal(known, inStore) {
		t.Fatalf("%s: stored %s, in memory %s (%v)", where, inStore, known, err)
	}
	numbers := map[uint32]bool{}
	for _, ns := range stored {
		numbers[ns.Number] = true
	}
	if len(numbers) != len(stored) || numbers[0] {
		t.Fatalf("%s: two namespaces share a number, or one has none: %+v", where, stored)
	}
}

// redo deploys and removes all that a change may have touched.
func redo(t *testing.T, n *node, where string, names []string) {
	t.Helper()
	for _, name := range names {
		if f := mustDeploy(t, n, Request{Name: name, Image: image("2")}); f.State != api.StateReady {
			t.Fatalf("%s: deployed again, it is %+v", where, f)
		}
		if err := n.Remove(t.Context(), "", name); err != nil {
			t.Fatalf("%s: remove: %v", where, err)
		}
	}
	if left := n.wanted(""); len(left) != 0 {
		t.Fatalf("%s: %v are left", where, left)
	}
}

// After a store was gone for longer than a change waits, the next change settles everything.
func TestChangeAfterTheStoreWasGone(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustDeploy(t, n, Request{Name: "web"})
	for _, unheard := range []struct {
		what  string
		write func() error
	}{
		{"a candidate", func() error {
			_, err := n.Store.Propose(t.Context(), store.Function{
				Namespace: api.DefaultNamespace, Name: "web", Artifact: image("1"), Spec: api.Spec{Name: "web"}.Default(),
			})
			return err
		}},
		{"a removal", func() error {
			_, err := n.Store.Delete(t.Context(), api.DefaultNamespace, "web")
			return err
		}},
	} {
		if err := unheard.write(); err != nil {
			t.Fatal(err)
		}
		n.unsettled = true // as after a write that got no answer
		mustDeploy(t, n, Request{Name: "other"})
		checkAgreement(t, n, unheard.what+" that the manager never heard of")
	}
	if _, err := n.Describe(t.Context(), "", "web"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("web: %v", err)
	}
}

// What the store may still be about to write is fenced off before what it has is read.
func TestFenceBeforeMending(t *testing.T) {
	n, wire := openWired(t)
	for fences, unsettled := range []bool{false, true} {
		n.unsettled = unsettled // as after a write that got no answer
		mustDeploy(t, n, Request{Name: "web"})
		if r, err := wire.KV.Get(t.Context(), "/lambdanic/v1/fence"); err != nil || len(r.Kvs) != fences {
			t.Errorf("unsettled: %v: %d fences, want %d (%v)", unsettled, len(r.Kvs), fences, err)
		}
	}
}

// A caller who hangs up while a target takes a candidate does not end that target's work.
func TestHangUpWhileATargetWorks(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	n.nic.event = func(ctx context.Context, what string) error {
		if what == "before deploy" {
			cancel()
		}
		return ctx.Err()
	}
	if f, err := n.Deploy(ctx, Request{Name: "web", Image: image("0")}); err != nil || f.Target != api.TargetNIC {
		t.Errorf("got %+v, %v", f, err)
	}
	if _, err := n.Deploy(ctx, Request{Name: "late", Image: image("0")}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who had gone before: %v", err)
	}
	checkAgreement(t, n, "hung up")
}

// Close waits for the change in progress, even if that change's caller has hung up, and no other change begins.
func TestCloseWaitsForTheChange(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	begun, goOn, deploy := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	n.nic.event = func(_ context.Context, what string) error {
		if what == "before deploy" {
			close(begun)
			<-goOn
		}
		return nil
	}
	ctx, hangUp := context.WithCancel(t.Context())
	go func() { deploy <- deployed(n.Deploy(ctx, Request{Name: "web", Image: image("0")})) }()
	<-begun
	hangUp()
	if err := n.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("closed amid a change: %v", err)
	}
	close(goOn)
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-deploy; err != nil {
		t.Error(err)
	}
	checkAgreement(t, n, "closed")
	if n.changes.TryAcquire(1) {
		t.Error("another change may begin")
	}
}

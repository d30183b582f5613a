package ikernel

import (
	"context"
	"errors"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/limits"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/isolated"
)

// newLimits makes limits by which nobody has a share or a quota, as a new NIC has.
func newLimits(t *testing.T) *limits.Limits {
	t.Helper()
	l, err := limits.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestEnter has applications' ikernels be of a namespace: it is theirs, too, until they leave it, or the daemon ends.
func TestEnter(t *testing.T) {
	n := newNode(t)
	enter := func() (*ikernels.Namespace, func(context.Context) error, error) {
		return n.Enter(t.Context(), "tenant", "echo")
	}
	has := func(when string, want int) {
		t.Helper()
		if all, err := n.store.IkernelsOf(t.Context(), "tenant"); err != nil || len(all) != want {
			t.Errorf("%s the namespace has %v, %v, want %d ikernels", when, all, err, want)
		}
	}
	if _, _, err := enter(); !errors.Is(err, errNoLimits) {
		t.Errorf("without a NIC: %v", err)
	}
	l := newLimits(t)
	n.limits.Store(l)
	if _, _, err := enter(); !errors.Is(err, errUnknown) {
		t.Errorf("of an unknown namespace: %v", err)
	}
	has("refused,", 0)
	made, err := n.store.ChangeQuota(t.Context(), "tenant", api.QuotaChange{})
	if err != nil {
		t.Fatal(err)
	}
	of, leave, err := enter()
	if err != nil || of.Name != "tenant" || of.Number != made.Number || of.Limits != l {
		t.Fatalf("it is of %+v, %v", of, err)
	}
	if _, _, err := enter(); err != nil {
		t.Fatal(err)
	}
	has("with two,", 2)
	if all, err := n.store.Ikernels(t.Context(), "here"); err != nil || len(all) != 0 {
		t.Errorf("the daemon is to attach %v, %v", all, err)
	}
	if err := leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	has("when one has left,", 1)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n.open()
	has("with the next daemon", 0)
}

// TestForget has the store not answer, or answer late, when ikernels enter a namespace and leave it: of those that are no more, nothing stays.
func TestForget(t *testing.T) {
	n := newNode(t)
	n.limits.Store(newLimits(t))
	if _, err := n.store.ChangeQuota(t.Context(), "tenant", api.QuotaChange{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	enter := func() (leave func(context.Context) error) {
		_, leave, err := n.Enter(ctx, "tenant", "echo")
		if err != nil {
			t.Fatal(err)
		}
		return leave
	}
	forgotten := func(when string, want store.HasIkernels) {
		t.Helper()
		if err := n.Forget(t.Context()); err != nil {
			t.Error(err)
		}
		var has store.HasIkernels
		if err := n.store.DeleteNamespace(t.Context(), "tenant"); err != nil && !errors.As(err, &has) || has != want {
			t.Errorf("%s: %v, want %d ikernels", when, err, want)
		}
	}
	_, leave := enter(), enter()
	forgotten("with two", 2)
	late := &store.Ikernel{IkernelRequest: api.IkernelRequest{Ikernel: "echo", Name: "late", Namespace: "tenant"}}
	if err := n.store.PutApplicationIkernel(t.Context(), "here", late); err != nil {
		t.Fatal(err)
	}
	forgotten("with a record of none", 2)
	asked, known := 0, n.cfg.Known
	n.cfg.Known = func(ctx context.Context, namespace string) (uint32, error) {
		if asked++; asked == 2 { // its record is written
			cancel()
		}
		return known(ctx, namespace)
	}
	if _, _, err := n.Enter(ctx, "tenant", "echo"); !errors.Is(err, context.Canceled) {
		t.Errorf("it entered without a store: %v", err)
	}
	forgotten("when one could not enter", 2)
	if err := leave(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("it left without a store: %v", err)
	}
	forgotten("when one has left", 1)
}

// TestNamespace keeps a cache in the quotas of a namespace, also when the NIC and its quotas are made anew.
func TestNamespace(t *testing.T) {
	s, n := isolated.New(t), newNode(t)
	r := request(s)
	r.Namespace = "tenant"
	if _, err := n.Attach(t.Context(), r); !errors.Is(err, errNoLimits) || n.records() != 0 {
		t.Errorf("got %v and %d records, want %v", err, n.records(), errNoLimits)
	}
	l := newLimits(t)
	n.limits.Store(l)
	if _, err := n.Attach(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	n.tend()
	s.Set("k", "v")
	s.Get("k", "v")
	if all, err := n.store.IkernelsOf(t.Context(), "tenant"); err != nil || len(all) != 1 {
		t.Errorf("the namespace has %v, %v, want one ikernel", all, err)
	}

	namespaces, err := n.store.Namespaces(t.Context())
	if err != nil || len(namespaces) != 1 {
		t.Fatalf("got %v, %v, want a namespace", namespaces, err)
	}
	if err := l.Set(api.Budget{}, map[uint32]api.Quota{namespaces[0].Number: {Requests: new(uint64)}}); err != nil {
		t.Fatal(err)
	}
	s.Ask("k")
	n.await("over quota", func(list []api.Ikernel) bool { return counter(list, "over_quota") == 1 })

	n.limits.Store(newLimits(t))
	n.await("attached again", func(list []api.Ikernel) bool { return attached(list) && counter(list, "over_quota") == 0 })
	n.await("hit", func(list []api.Ikernel) bool {
		s.Get("k", "v")
		return attached(list) && counter(list, "hits") > 0
	})
}

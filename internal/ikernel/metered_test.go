package ikernel

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/ikernels"
	"github.com/lambdanic/lambdanic/internal/limits"
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
	if err := l.Set(0, map[uint32]api.Quota{namespaces[0].Number: {Requests: new(uint64)}}); err != nil {
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

// What the store could not be told of is told to it with the next one, and then no more.
func TestForget(t *testing.T) {
	var told []string
	broken := errors.New("no store")
	l := left{names: map[string]bool{}, remove: func(_ context.Context, name string) error {
		told = append(told, name)
		return broken
	}}
	if err := l.forget(t.Context(), "1"); !errors.Is(err, broken) {
		t.Errorf("without a store: %v", err)
	}
	broken = nil
	for range 2 {
		if err := l.forget(t.Context(), "2"); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(told)
	if want := []string{"1", "1", "2", "2"}; !slices.Equal(told, want) {
		t.Errorf("it told %v, want %v", told, want)
	}
}

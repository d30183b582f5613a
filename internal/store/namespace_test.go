package store

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func in(namespace, name string) Function {
	f := function(name)
	f.Namespace, f.Memory = namespace, 100
	return f
}

// numbers are those of all namespaces, by name.
func numbers(t *testing.T, s *Store) map[string]uint32 {
	t.Helper()
	list, err := s.Namespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]uint32{}
	for _, n := range list {
		all[n.Name] = n.Number
	}
	return all
}

// A namespace gets a number with its first function or quota, and keeps it, whatever comes and goes. The number of a removed namespace never
// comes back.
func TestNamespaceNumbers(t *testing.T) {
	dir := shortdir.New(t)
	ctx := t.Context()
	s, err := Open(ctx, config(dir))
	if err != nil {
		t.Fatal(err)
	}
	cs, err := s.ProposeAll(ctx, []Function{in("one", "a"), in("two", "a"), in("one", "b")})
	if err != nil {
		t.Fatal(err)
	}
	if cs[0].NamespaceID != 1 || cs[1].NamespaceID != 2 || cs[2].NamespaceID != 1 {
		t.Errorf("numbers %d, %d and %d", cs[0].NamespaceID, cs[1].NamespaceID, cs[2].NamespaceID)
	}
	if err := s.Abandon(ctx, cs[1]); err != nil {
		t.Fatal(err)
	}
	change := api.QuotaChange{Lambdas: api.SetLimit(3)}
	for range 2 { // may be repeated
		if n, err := s.ChangeQuota(ctx, "three", change); err != nil || n.Number != 3 || *n.Quota.Lambdas != 3 || n.Quota.Memory != nil {
			t.Errorf("%+v (%v)", n, err)
		}
	}
	if n, err := s.ChangeQuota(ctx, "three", api.QuotaChange{Memory: api.SetLimit(0)}); err != nil || *n.Quota.Lambdas != 3 || *n.Quota.Memory != 0 {
		t.Errorf("%+v (%v)", n, err)
	}
	if n, err := s.ChangeQuota(ctx, "three", api.QuotaChange{Lambdas: api.NoLimit()}); err != nil || n.Quota.Lambdas != nil || *n.Quota.Memory != 0 {
		t.Errorf("%+v (%v)", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if got := numbers(t, s); len(got) != 3 || got["one"] != 1 || got["two"] != 2 || got["three"] != 3 {
		t.Errorf("after a restart, numbers %v", got)
	}
	for range 2 {
		if err := s.DeleteNamespace(ctx, "two"); err != nil {
			t.Fatal(err)
		}
	}
	cs, err = s.ProposeAll(ctx, []Function{in("four", "a"), in("five", "a"), in("two", "a")})
	if err != nil {
		t.Fatal(err)
	}
	if cs[0].NamespaceID != 2+api.MaxNamespaces || cs[1].NamespaceID != 4 || cs[2].NamespaceID != 5 {
		t.Errorf("numbers %d, %d and %d", cs[0].NamespaceID, cs[1].NamespaceID, cs[2].NamespaceID)
	}
}

func TestTooManyNamespaces(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	err := s.update(ctx, func(tx concurrency.STM) error {
		putID(tx, lastNumberKey, api.MaxNamespaces-2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.ChangeQuota(ctx, "last", api.QuotaChange{}); err != nil || n.Number != api.MaxNamespaces-1 {
		t.Fatalf("%+v (%v)", n, err)
	}
	_, err = s.Propose(ctx, in("more", "a"))
	if err == nil || !strings.Contains(err.Error(), "all 4095 namespaces are in use: remove one") {
		t.Errorf("one more: %v", err)
	}
	if list, err := s.Candidates(ctx); err != nil || len(list) != 0 {
		t.Errorf("it left candidates %+v (%v)", list, err)
	}
	if err := s.DeleteNamespace(ctx, "last"); err != nil {
		t.Fatal(err)
	}
	if f, err := s.Propose(ctx, in("more", "a")); err != nil || f.NamespaceID != 2*api.MaxNamespaces-1 {
		t.Errorf("after a removal: %+v (%v)", f, err)
	}
}

// What an earlier version wrote gets numbers and sizes, once.
func TestPlaceCompletesFunctions(t *testing.T) {
	s, ctx := open(t, shortdir.New(t)), t.Context()
	old := in("tenant", "old")
	old.Workload, old.Revision, old.Memory = 9, 3, 0
	err := s.update(ctx, func(tx concurrency.STM) error { return put(tx, functionDir+old.Key(), &old) })
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for range 2 {
		err := s.Place(ctx, old.Nodes, func(f *Function) uint64 { asked = append(asked, f.Key()); return 77 })
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.Assignment(ctx, "n", 9)
		if err != nil || a.Wanted == nil || a.Wanted.Function.NamespaceID != 1 || a.Wanted.Function.Memory != 77 {
			t.Errorf("placed %+v (%v)", a, err)
		}
		if f, err := s.Get(ctx, "tenant", "old"); err != nil || f.NamespaceID != 1 || f.Memory != 77 || f.Revision != 3 {
			t.Errorf("%+v (%v)", f, err)
		}
	}
	if !slices.Equal(asked, []string{"tenant/old"}) {
		t.Errorf("asked for the memory of %v", asked)
	}
}

// A namespace comes to be with its first network, and a change that fails changes nothing.
func TestChangeNetworks(t *testing.T) {
	dir, ctx := shortdir.New(t), t.Context()
	s, err := Open(ctx, config(dir))
	if err != nil {
		t.Fatal(err)
	}
	want := []api.Network{{Kind: api.NetworkVLAN, ID: 4094}, {Kind: api.NetworkVXLAN, ID: 1<<24 - 1}}
	for i, network := range want {
		n, err := s.ChangeNetworks(ctx, "tenant", func(has []api.Network) ([]api.Network, error) { return append(has, network), nil })
		if err != nil || n.Number != 1 || !slices.Equal(n.Networks, want[:i+1]) {
			t.Errorf("%+v (%v)", n, err)
		}
	}
	refused := errors.New("no")
	for _, name := range []string{"tenant", "other"} {
		if _, err := s.ChangeNetworks(ctx, name, func([]api.Network) ([]api.Network, error) { return nil, refused }); !errors.Is(err, refused) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := open(t, dir).Namespaces(ctx)
	if err != nil || len(list) != 1 || !slices.Equal(list[0].Networks, want) {
		t.Errorf("afterwards %+v (%v)", list, err)
	}
}

// A namespace is not deleted while an ikernel joins it: one of both fails.
func TestDeleteNamespaceThatIsJoined(t *testing.T) {
	s := open(t, t.TempDir())
	ctx := t.Context()
	for i := range 50 {
		if _, err := s.ChangeQuota(ctx, "tenant", api.QuotaChange{}); err != nil {
			t.Fatal(err)
		}
		name := strconv.Itoa(i)
		var deleted, joined error
		var group sync.WaitGroup
		group.Go(func() { deleted = s.DeleteNamespace(ctx, "tenant") })
		group.Go(func() {
			joined = s.PutApplicationIkernel(ctx, "here", &Ikernel{IkernelRequest: api.IkernelRequest{Ikernel: "echo", Name: name, Namespace: "tenant"}})
		})
		group.Wait()
		if (deleted == nil) == (joined == nil) {
			t.Fatalf("turn %d: deleted: %v, joined: %v", i, deleted, joined)
		}
		if n := HasIkernels(0); deleted != nil && (!errors.As(deleted, &n) || n != 1) {
			t.Fatalf("turn %d: %v", i, deleted)
		}
		if joined == nil {
			if err := s.DeleteApplicationIkernel(ctx, "here", name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

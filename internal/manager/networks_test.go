package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

var (
	vlan100   = api.Network{Kind: api.NetworkVLAN, ID: 100}
	vxlan5001 = api.Network{Kind: api.NetworkVXLAN, ID: 5001}
)

func mustAddNetwork(t *testing.T, n *node, name string, network api.Network) *api.Namespace {
	t.Helper()
	ns, err := n.AddNetwork(t.Context(), name, network)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func removeNetwork(ctx context.Context, n *node) error {
	_, err := n.RemoveNetwork(ctx, "tenant", vlan100)
	if errors.Is(err, ErrNoNetwork) {
		return nil
	}
	return err
}

// wantNetworks checks that the backends were told that exactly these networks belong to namespaces.
func wantNetworks(t *testing.T, n *node, when string, want map[api.Network]uint32) {
	t.Helper()
	for place, b := range map[string]*fakeBackend{"nic": n.nic, "process": n.process} {
		if got := b.limits.Load().Networks; !maps.Equal(got, want) {
			t.Errorf("%s, target %s keeps to %v, want %v", when, place, got, want)
		}
	}
}

// A namespace comes to be with its first network, and all backends know of each change.
func TestNetworks(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	wantNetworks(t, n, "at first", nil)
	if ns := mustAddNetwork(t, n, "tenant", vlan100); ns.Number != 1 || !slices.Equal(ns.Networks, []api.Network{vlan100}) {
		t.Errorf("%+v", ns)
	}
	if ns := mustAddNetwork(t, n, "tenant", vxlan5001); !slices.Equal(ns.Networks, []api.Network{vlan100, vxlan5001}) {
		t.Errorf("%+v", ns)
	}
	vlan500 := api.Network{Kind: api.NetworkVLAN, ID: 500}
	mustAddNetwork(t, n, api.DefaultNamespace, vlan500)
	wantNetworks(t, n, "with three", map[api.Network]uint32{vlan100: 1, vxlan5001: 1, vlan500: 2})
	ns, err := n.RemoveNetwork(t.Context(), "tenant", vlan100)
	if err != nil || !slices.Equal(ns.Networks, []api.Network{vxlan5001}) {
		t.Errorf("%+v (%v)", ns, err)
	}
	wantNetworks(t, n, "after a removal", map[api.Network]uint32{vxlan5001: 1, vlan500: 2})
	if got := mustShow(t, n, "tenant").Networks; !slices.Equal(got, []api.Network{vxlan5001}) {
		t.Errorf("it is shown with %v", got)
	}
}

// A network belongs to one namespace, which gets it once, and who asks for another is told whose it is.
func TestNetworkConflicts(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustAddNetwork(t, n, "tenant", vlan100)
	for name, want := range map[string]string{
		"tenant": "network vlan:100 is in use: namespace tenant has it already",
		"other":  "network vlan:100 is in use: namespace tenant has it: take it from there first: `lambdanic namespace network remove tenant vlan:100`",
	} {
		if _, err := n.AddNetwork(t.Context(), name, vlan100); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), want) {
			t.Errorf("added to %s: %v", name, err)
		}
	}
	if _, err := n.Namespace(t.Context(), "other"); !errors.Is(err, ErrNoNamespace) {
		t.Errorf("what was refused left a namespace (%v)", err)
	}
	for _, name := range []string{"tenant", "default"} {
		want := fmt.Sprintf("namespace %s has no network vxlan:5001: `lambdanic namespace show %s`", name, name)
		if _, err := n.RemoveNetwork(t.Context(), name, vxlan5001); !errors.Is(err, ErrNoNetwork) || !strings.Contains(err.Error(), want) {
			t.Errorf("removed from %s: %v", name, err)
		}
	}
	if _, err := n.RemoveNetwork(t.Context(), "other", vxlan5001); !errors.Is(err, ErrNoNamespace) || !strings.Contains(err.Error(), "other: `lambdanic namespace list`") {
		t.Errorf("removed from a namespace that there is not: %v", err)
	}
	if _, err := n.AddNetwork(t.Context(), "No", vxlan5001); !errors.Is(err, ErrInvalid) {
		t.Errorf("a network for a name that is none: %v", err)
	}
	if err := removeNetwork(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	mustAddNetwork(t, n, "other", vlan100)
	wantNetworks(t, n, "after all", map[api.Network]uint32{vlan100: 2})
}

func TestTooManyNetworks(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	for id := range uint32(16) {
		mustAddNetwork(t, n, "tenant", api.Network{Kind: api.NetworkVLAN, ID: id + 1})
	}
	if _, err := n.AddNetwork(t.Context(), "tenant", vlan100); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "namespace tenant has 16: remove one first") {
		t.Errorf("one more: %v", err)
	}
	if got := mustShow(t, n, "tenant").Networks; len(got) != 16 {
		t.Errorf("then it has %v", got)
	}
	mustAddNetwork(t, n, "other", vlan100)
	if _, err := n.RemoveNetwork(t.Context(), "tenant", api.Network{Kind: api.NetworkVLAN, ID: 7}); err != nil {
		t.Fatal(err)
	}
	mustAddNetwork(t, n, "tenant", vxlan5001)
}

// Networks are kept in the store, and are nobody's once their namespace is removed.
func TestNetworksAreKept(t *testing.T) {
	dir := shortdir.New(t)
	st, err := store.Open(t.Context(), store.Config{DataDir: filepath.Join(dir, "d"), SocketDir: filepath.Join(dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	n := openOn(t, dir, st, nil)
	mustAddNetwork(t, n, "tenant", vlan100)
	mustAddNetwork(t, n, "tenant", vxlan5001)
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(1)})
	mustAddKey(t, n)
	n.stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, dir, nil)
	wantNetworks(t, n, "after a restart", map[api.Network]uint32{vlan100: 1, vxlan5001: 1})
	if _, err := n.AddNetwork(t.Context(), "other", vlan100); !errors.Is(err, ErrInUse) {
		t.Errorf("after a restart, added to another namespace: %v", err)
	}
	if err := n.RemoveNamespace(t.Context(), "tenant"); err != nil {
		t.Fatal(err)
	}
	wantNetworks(t, n, "without the namespace", nil)
	mustAddNetwork(t, n, "other", vlan100)
	if ns := mustAddNetwork(t, n, "tenant", api.Network{Kind: api.NetworkVLAN, ID: 1}); len(ns.Networks) != 1 {
		t.Errorf("the next namespace of that name has %v", ns.Networks)
	}
}

// Of namespaces that want one network at once, one gets it.
func TestOneGetsTheNetwork(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	var mu sync.Mutex
	var won []string
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			name := fmt.Sprint("tenant", i)
			_, err := n.AddNetwork(t.Context(), name, vlan100)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won = append(won, name)
			case !errors.Is(err, ErrInUse):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Fatalf("it went to %v", won)
	}
	if ns := mustShow(t, n, won[0]); !slices.Equal(ns.Networks, []api.Network{vlan100}) {
		t.Errorf("%+v", ns)
	}
	wantNetworks(t, n, "after all", map[api.Network]uint32{vlan100: mustShow(t, n, won[0]).Number})
}

// A network that a backend does not take is in force after the next change.
func TestNetworkIsPutInForce(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	broken := errors.New("the map is full")
	n.nic.event = func(_ context.Context, what string) error {
		if what == "limit" {
			return broken
		}
		return nil
	}
	if _, err := n.AddNetwork(t.Context(), "tenant", vlan100); !errors.Is(err, broken) || !strings.Contains(err.Error(), "change the networks of namespace tenant: it is stored, but not yet in force") {
		t.Errorf("added: %v", err)
	}
	n.nic.event = nil
	if _, err := n.AddNetwork(t.Context(), "other", vlan100); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "namespace tenant has it") {
		t.Errorf("added to another namespace: %v", err)
	}
	wantNetworks(t, n, "after the next change", map[api.Network]uint32{vlan100: 1})
}

// A match stage, whose packets are of any network, and networks do not go together.
func TestStagesHaveNoNetworks(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustDeploy(t, n, stage("first"))
	if _, err := n.AddNetwork(t.Context(), "tenant", vlan100); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "tenant/first is a match stage, whose packets are of any network") {
		t.Errorf("a network for a match stage: %v", err)
	}
	if err := n.Remove(t.Context(), "tenant", "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.AddNetwork(t.Context(), "tenant", vlan100); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Deploy(t.Context(), stage("second")); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "namespace tenant has networks, and function second is a match stage") {
		t.Errorf("deployed a match stage: %v", err)
	}
	mustDeploy(t, n, tenant("third"))
}

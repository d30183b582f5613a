package manager

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// Each function of fakeArtifacts takes so many bytes: it has no maps, and three bytes that are no ELF.
const each = uint64(len("bpf"))

func mustSet(t *testing.T, n *node, name string, change api.QuotaChange) *api.Namespace {
	t.Helper()
	ns, err := n.SetQuota(t.Context(), name, change)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func mustShow(t *testing.T, n *node, name string) *api.Namespace {
	t.Helper()
	ns, err := n.Namespace(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func tenant(name string) Request { return Request{Namespace: "tenant", Name: name, Image: image("0")} }

// overQuota deploys, and checks that the deploy is refused with the quota's numbers, and that nothing of it was done.
func overQuota(t *testing.T, n *node, want QuotaError, rs ...Request) {
	t.Helper()
	before, workloads, deploys := mustShow(t, n, want.Namespace), len(n.nic.load()), n.nic.deploys
	var err error
	if len(rs) == 1 {
		_, err = n.Deploy(t.Context(), rs[0])
	} else {
		_, err = n.DeployFused(t.Context(), rs)
	}
	got := new(QuotaError)
	if !errors.As(err, &got) || *got != want {
		t.Fatalf("got %v, want %+v", err, want)
	}
	if text := err.Error(); !strings.Contains(text, "namespace "+want.Namespace) || !strings.Contains(text, "`lambdanic namespace set "+want.Namespace+" --"+want.Quota+" ") {
		t.Errorf("it says %q", text)
	}
	if candidates, err := n.Store.Candidates(t.Context()); err != nil || len(candidates) > 0 {
		t.Errorf("it left candidates %+v (%v)", candidates, err)
	}
	if after := mustShow(t, n, want.Namespace); !reflect.DeepEqual(after, before) || len(n.nic.load()) != workloads || n.nic.deploys != deploys {
		t.Errorf("it left %+v, and the NIC runs %v", after, n.nic.load())
	}
}

func TestQuotaOfLambdas(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(2)})
	mustDeploy(t, n, tenant("a"))
	mustDeploy(t, n, tenant("b"))
	full := QuotaError{Namespace: "tenant", Quota: "lambdas", Limit: 2, Used: 2, Wanted: 3}
	overQuota(t, n, full, tenant("c"))
	if f := mustDeploy(t, n, tenant("b")); f.Revision != 2 { // in its own place
		t.Errorf("%+v", f)
	}
	mustDeploy(t, n, Request{Name: "c"}) // in another namespace
	if err := n.Remove(t.Context(), "tenant", "a"); err != nil {
		t.Fatal(err)
	}
	mustDeploy(t, n, tenant("c"))
	overQuota(t, n, full, tenant("a"))
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.NoLimit()})
	mustDeploy(t, n, tenant("a"))
}

func TestQuotaOfMemory(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustSet(t, n, "tenant", api.QuotaChange{Memory: api.SetLimit(2*each + 1)})
	mustDeploy(t, n, tenant("a"))
	mustDeploy(t, n, tenant("b"))
	overQuota(t, n, QuotaError{Namespace: "tenant", Quota: "memory", Limit: 2*each + 1, Used: 2 * each, Wanted: 3 * each}, tenant("c"))
	larger := tenant("b")
	larger.Image = image("d") // for a process alone, which is larger
	overQuota(t, n, QuotaError{Namespace: "tenant", Quota: "memory", Limit: 2*each + 1, Used: 2 * each, Wanted: each + uint64(len("native"))}, larger)
	if ns := mustShow(t, n, "tenant"); ns.Use != (api.NamespaceUse{Lambdas: 2, Memory: 2 * each}) || len(ns.Over) > 0 {
		t.Errorf("%+v", ns)
	}
}

// Functions that are deployed together fit together, or none of them is deployed.
func TestQuotaOfFusedFunctions(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(1)})
	overQuota(t, n, QuotaError{Namespace: "tenant", Quota: "lambdas", Limit: 1, Used: 0, Wanted: 2}, tenant("a"), tenant("b"))
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(2)})
	if _, err := n.DeployFused(t.Context(), []Request{tenant("a"), tenant("b")}); err != nil {
		t.Fatal(err)
	}
}

// A quota below what is deployed removes nothing, says so, and refuses what would take more. What takes as much as before is no more.
func TestQuotaBelowUse(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	for _, name := range []string{"a", "b", "c"} {
		mustDeploy(t, n, tenant(name))
	}
	ns := mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(1), Memory: api.SetLimit(0)})
	if len(ns.Over) != 2 || !strings.Contains(ns.Over[0], "3 lambdas, more than its quota of 1 lambda") || !strings.Contains(ns.Over[1], "0 B of memory") {
		t.Errorf("the answer says %q", ns.Over)
	}
	if list, err := n.List(t.Context(), "tenant"); err != nil || len(list) != 3 || list[0].State != api.StateReady || list[0].Memory != each {
		t.Errorf("afterwards there are %+v (%v)", list, err)
	}
	overQuota(t, n, QuotaError{Namespace: "tenant", Quota: "lambdas", Limit: 1, Used: 3, Wanted: 4}, tenant("d"))
	if f := mustDeploy(t, n, tenant("a")); f.Revision != 2 {
		t.Errorf("%+v", f)
	}
	if ns = mustShow(t, n, "tenant"); len(ns.Over) != 2 {
		t.Errorf("%+v", ns)
	}
}

// Of those who want the last place at once, one gets it.
func TestLastPlace(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(3)})
	mustDeploy(t, n, tenant("a"))
	mustDeploy(t, n, tenant("b"))
	var mu sync.Mutex
	var won, lost int
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := n.Deploy(t.Context(), tenant(fmt.Sprint("c", i)))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.As(err, new(*QuotaError)):
				lost++
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won != 1 || lost != 7 || mustShow(t, n, "tenant").Use.Lambdas != 3 || len(n.nic.load()) != 3 {
		t.Errorf("%d got it, %d did not; the NIC runs %v", won, lost, n.nic.load())
	}
}

// Quotas and numbers are those of the store.
func TestNamespacesAfterRestart(t *testing.T) {
	dir := shortdir.New(t)
	st, err := store.Open(t.Context(), store.Config{DataDir: filepath.Join(dir, "d"), SocketDir: filepath.Join(dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	n := openOn(t, dir, st, nil)
	if list, err := n.Namespaces(t.Context()); err != nil || len(list) != 1 || list[0].Name != "default" || list[0].Number != 0 {
		t.Errorf("at first there are %+v (%v)", list, err)
	}
	mustSet(t, n, "tenant", api.QuotaChange{Lambdas: api.SetLimit(1), Memory: api.SetLimit(1 << 20)})
	mustDeploy(t, n, Request{Name: "web"})
	mustDeploy(t, n, tenant("web"))
	mustSet(t, n, "empty", api.QuotaChange{})
	before, err := n.Namespaces(t.Context())
	if err != nil || len(before) != 3 {
		t.Fatalf("%+v (%v)", before, err)
	}
	if before[0].Name != "default" || before[0].Number != 2 || before[2].Number != 1 || before[2].Use != (api.NamespaceUse{Lambdas: 1, Memory: each}) {
		t.Errorf("%+v", before)
	}
	n.stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, dir, nil)
	if after, err := n.Namespaces(t.Context()); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("after a restart %+v (%v), before %+v", after, err, before)
	}
	overQuota(t, n, QuotaError{Namespace: "tenant", Quota: "lambdas", Limit: 1, Used: 1, Wanted: 2}, tenant("b"))
}

func TestRemoveNamespace(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustDeploy(t, n, tenant("web"))
	for name, want := range map[string]error{"tenant": ErrInUse, "default": ErrInvalid, "nosuch": ErrNoNamespace, "": ErrInvalid, "a/b": ErrInvalid} {
		if err := n.RemoveNamespace(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("remove %q: %v, want %v", name, err, want)
		}
	}
	if err := n.Remove(t.Context(), "tenant", "web"); err != nil {
		t.Fatal(err)
	}
	if ns := mustShow(t, n, "tenant"); ns.Use != (api.NamespaceUse{}) || ns.Number != 1 {
		t.Errorf("without functions it is %+v", ns)
	}
	if err := n.Store.PutIkernel(t.Context(), "another node", &store.Ikernel{IkernelRequest: api.IkernelRequest{Name: "cache", Namespace: "tenant"}}); err != nil {
		t.Fatal(err)
	}
	if err := n.RemoveNamespace(t.Context(), "tenant"); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "1 ikernel") {
		t.Errorf("with an ikernel: %v", err)
	}
	if err := n.Store.DeleteIkernel(t.Context(), "another node", "cache"); err != nil {
		t.Fatal(err)
	}
	if err := n.RemoveNamespace(t.Context(), "tenant"); err != nil {
		t.Fatal(err)
	}
	late := &store.Ikernel{IkernelRequest: api.IkernelRequest{Name: "cache", Namespace: "tenant"}}
	if err := n.Store.PutIkernel(t.Context(), "another node", late); err == nil || !strings.Contains(err.Error(), "was removed meanwhile") {
		t.Errorf("an ikernel of a namespace that is removed: %v", err)
	}
	if _, err := n.Namespace(t.Context(), "tenant"); !errors.Is(err, ErrNoNamespace) {
		t.Errorf("afterwards: %v", err)
	}
	mustDeploy(t, n, tenant("web"))
	if ns := mustShow(t, n, "tenant"); ns.Number != 1+api.MaxNamespaces {
		t.Errorf("the next of its name is %+v", ns)
	}
}

// TestNumber has namespaces come to be, also the default one, when something that is no function asks for their numbers.
func TestNumber(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	for i, name := range []string{"tenant", api.DefaultNamespace, "tenant"} {
		if number, err := n.Number(t.Context(), name); err != nil || number != []uint32{1, 2, 1}[i] {
			t.Errorf("the number of %s is %d, %v", name, number, err)
		}
	}
	if _, err := n.Number(t.Context(), "a/b"); !errors.Is(err, ErrInvalid) {
		t.Errorf("the number of no name: %v", err)
	}
}

// TestKnownNumber: who asks for the number of a namespace that there is makes none.
func TestKnownNumber(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	if _, err := n.KnownNumber(t.Context(), "tenant"); !errors.Is(err, ErrNoNamespace) || !strings.Contains(err.Error(), "lambdanic namespace set") {
		t.Errorf("got %v", err)
	}
	if _, err := n.Namespace(t.Context(), "tenant"); !errors.Is(err, ErrNoNamespace) {
		t.Errorf("it was made: %v", err)
	}
	if number, err := n.KnownNumber(t.Context(), api.DefaultNamespace); err != nil || number == 0 {
		t.Errorf("the number of the default namespace is %d, %v", number, err)
	}
	want, err := n.Number(t.Context(), "tenant")
	if err != nil {
		t.Fatal(err)
	}
	if number, err := n.KnownNumber(t.Context(), "tenant"); err != nil || number != want {
		t.Errorf("the number is %d, %v, want %d", number, err, want)
	}
}

func TestBadNamespaceNames(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	for _, name := range []string{"", "A", "a_b", "a/b", "-a", "a-", "1a", "ä", strings.Repeat("a", 64)} {
		_, show := n.Namespace(t.Context(), name)
		_, set := n.SetQuota(t.Context(), name, api.QuotaChange{})
		for _, err := range []error{show, set} {
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "use 1 to 63 lower-case letters") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
	if list, err := n.Store.Namespaces(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("they left %+v (%v)", list, err)
	}
}

// The backends are told the number of a deployment's namespace.
func TestDeploymentHasNamespace(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	var got backend.Deployment
	n.nic.refuse = func(d backend.Deployment) error { got = d; return nil }
	mustDeploy(t, n, Request{Name: "web"})
	mustDeploy(t, n, tenant("web"))
	if got.NamespaceID != 2 || got.Namespace != "tenant" {
		t.Errorf("got %+v", got)
	}
}

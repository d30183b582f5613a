package daemon

import (
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
)

// showNamespace describes a namespace, for which a NIC counts.
func showNamespace(t *testing.T, p Paths, name string) *api.Namespace {
	t.Helper()
	n, err := NewClient(p).Namespace(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if n.Stats == nil {
		t.Fatalf("no NIC counts for %s: %+v", name, n)
	}
	return n
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %q (%v)", url, r.StatusCode, body, err)
	}
	return string(body)
}

// A tenant's quota, number and counters go on across updates, removals and the end of the daemon.
func TestTenant(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "t")
	c := mustUp(t, Config{Paths: p, Listen: anyPort})
	client, ctx := NewClient(p), t.Context()
	if n, err := client.SetQuota(ctx, "tenant", api.QuotaChange{Lambdas: api.SetLimit(1)}); err != nil || n.Number != 1 {
		t.Fatalf("%+v (%v)", n, err)
	}
	a, err := Build(ctx, p, "../../lambdas/web_server")
	if err != nil {
		t.Fatal(err)
	}
	deploy := func(namespace, name string) error {
		f, err := client.Deploy(ctx, types.FunctionDeployment{Service: name, Namespace: namespace, Image: a.Image})
		if err == nil && f.Target != api.TargetNIC {
			t.Errorf("it runs on %s: %+v", f.Target, f.Refused)
		}
		return err
	}
	requests := uint64(0)
	use := func(times int) {
		for range times {
			fetch(t, "http://"+c.node.Listen+"/function/web.tenant")
			requests++
		}
	}
	check := func(when string, number, lambdas uint64) {
		t.Helper()
		n := showNamespace(t, p, "tenant")
		if n.Stats.Requests != requests || n.Stats.Replies != requests || uint64(n.Number) != number || *n.Quota.Lambdas != 1 ||
			n.Use.Lambdas != lambdas || (n.Use.Memory > 0) != (lambdas > 0) {
			t.Errorf("%s: %+v, counted %+v, want %d requests", when, n, n.Stats, requests)
		}
		if other := showNamespace(t, p, api.DefaultNamespace); other.Stats.Requests != 1 {
			t.Errorf("%s: namespace default counted %+v", when, other.Stats)
		}
	}
	for _, namespace := range []string{"tenant", api.DefaultNamespace} {
		if err := deploy(namespace, "web"); err != nil {
			t.Fatal(err)
		}
	}
	get(t, c.node.Listen)
	use(5)
	check("at first", 1, 1)
	if err := deploy("tenant", "other"); err == nil || !strings.Contains(err.Error(), "over quota: namespace tenant may have 1 lambda and has 1 lambda") {
		t.Errorf("one more: %v", err)
	}
	if err := deploy("tenant", "web"); err != nil {
		t.Fatal(err)
	}
	use(2)
	check("after an update", 1, 1)
	c.kill()
	c = mustUp(t, Config{Paths: p, Listen: anyPort})
	check("with the next daemon", 1, 1)
	if err := deploy("tenant", "other"); err == nil {
		t.Error("the next daemon lets one more in")
	}
	use(1)
	if err := client.RemoveNamespace(ctx, "tenant"); err == nil || !strings.Contains(err.Error(), "remove them first") {
		t.Errorf("remove a namespace in use: %v", err)
	}
	if err := client.Remove(ctx, "tenant", "web"); err != nil {
		t.Fatal(err)
	}
	check("after the removal", 1, 0)
	c.kill()
	c = mustUp(t, Config{Paths: p, Listen: anyPort})
	check("with the daemon after that", 1, 0)
	if err := deploy("tenant", "web"); err != nil {
		t.Fatal(err)
	}
	use(1)
	check("with a new lambda", 1, 1)
	if err := client.Remove(ctx, "tenant", "web"); err != nil {
		t.Fatal(err)
	}
	if err := client.RemoveNamespace(ctx, "tenant"); err != nil {
		t.Fatal(err)
	}
	if n, err := client.SetQuota(ctx, "tenant", api.QuotaChange{Lambdas: api.SetLimit(1)}); err != nil || n.Number == 1 || n.Stats.Requests != 0 {
		t.Errorf("the next of its name is %+v (%v)", n, err)
	}
}

// What a tenant may do per second is in force once it is set, whatever becomes of the daemon or the NIC, and until it is taken away.
func TestTenantOverQuota(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "q")
	c := mustUp(t, Config{Paths: p, Listen: anyPort})
	client, ctx := NewClient(p), t.Context()
	web := deployWebServer(t, p)
	if _, err := client.Deploy(ctx, types.FunctionDeployment{Service: "web", Namespace: "tenant", Image: web.Image}); err != nil {
		t.Fatal(err)
	}
	refused := uint64(0)
	check := func(when string, status int) {
		t.Helper()
		r, err := http.Get("http://" + c.node.Listen + "/function/web.tenant")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != status || status != http.StatusOK && !strings.Contains(string(body), "over quota") {
			t.Errorf("%s: %d %q (%v), want %d", when, r.StatusCode, body, err, status)
		}
		get(t, c.node.Listen)
		if status != http.StatusOK {
			refused++
		}
		if s := showNamespace(t, p, "tenant").Stats; s.OverQuota != refused || s.Errors != refused {
			t.Errorf("%s: counted %+v, want %d refused", when, s, refused)
		}
	}
	set := func(q api.QuotaChange) {
		t.Helper()
		if _, err := client.SetQuota(ctx, "tenant", q); err != nil {
			t.Fatal(err)
		}
	}
	check("without a quota", http.StatusOK)
	set(api.QuotaChange{Requests: api.SetLimit(0)})
	check("with a quota of no requests", http.StatusTooManyRequests)
	set(api.QuotaChange{NICTime: api.SetLimit(1e9)})
	check("with time, but no requests", http.StatusTooManyRequests)
	c.kill()
	c = mustUp(t, Config{Paths: p, Listen: anyPort})
	check("with the next daemon", http.StatusTooManyRequests)
	if err := Down(ctx, p, false); err != nil {
		t.Fatal(err)
	}
	c = mustUp(t, Config{Paths: p, Listen: anyPort})
	refused = 0 // a new NIC counts from zero
	check("with a new NIC", http.StatusTooManyRequests)
	set(api.QuotaChange{Requests: api.NoLimit()})
	check("without a quota again", http.StatusOK)
	set(api.QuotaChange{NICTime: api.SetLimit(0)})
	check("without time", http.StatusTooManyRequests)
	r, err := client.Do(ctx, http.MethodGet, "/metrics", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	metrics, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`lambdanic_namespace_nic_seconds_quota{namespace="tenant"} 0`, `lambdanic_namespace_over_quota_total{namespace="tenant"} 2`,
	} {
		if !strings.Contains(string(metrics), want+"\n") {
			t.Errorf("no %q in /metrics", want)
		}
	}
	if strings.Contains(string(metrics), "lambdanic_namespace_requests_quota") {
		t.Error("there is a quota of requests in /metrics, and none in force")
	}
}

// What is counted and what is limited is in /metrics and in OpenFaaS's list.
func TestTenantMetrics(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "u")
	c := mustUp(t, Config{Paths: p, Listen: anyPort})
	client := NewClient(p)
	deployWebServer(t, p)
	get(t, c.node.Listen)
	if _, err := client.SetQuota(t.Context(), "tenant", api.QuotaChange{Memory: api.SetLimit(4096)}); err != nil {
		t.Fatal(err)
	}
	for path, wants := range map[string][]string{
		"/metrics": {
			`lambdanic_namespace_requests_total{namespace="default"} 1`, `lambdanic_namespace_requests_total{namespace="tenant"} 0`,
			`lambdanic_namespace_lambdas{namespace="default"} 1`, `lambdanic_namespace_memory_quota_bytes{namespace="tenant"} 4096`,
		},
		"/system/namespaces": {`["default","tenant"]`},
	} {
		r, err := client.Do(t.Context(), http.MethodGet, path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		for _, want := range wants {
			if err != nil || !strings.Contains(string(body), want+"\n") {
				t.Errorf("%s lacks %s (%v)", path, want, err)
			}
		}
	}
}

// With a budget, each namespace has a share of it: also one whose first function comes later, with the next daemon, and until there is
// a daemon without a budget.
func TestTenantOverShare(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "b")
	c := mustUp(t, Config{Paths: p, Listen: anyPort, Budget: api.Budget{Time: 1}}) // a nanosecond per second
	if c.node.Budget.Time != 1 {
		t.Errorf("the node says it has a budget of %d ns", c.node.Budget.Time)
	}
	client, ctx := NewClient(p), t.Context()
	web := deployWebServer(t, p)
	if _, err := client.Deploy(ctx, types.FunctionDeployment{Service: "web", Namespace: "tenant", Image: web.Image}); err != nil {
		t.Fatal(err)
	}
	// Each CPU serves a namespace's first request in any case.
	refused := func() (refused uint64) {
		t.Helper()
		for range runtime.NumCPU() + 1 {
			r, err := http.Get("http://" + c.node.Listen + "/function/web.tenant")
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			r.Body.Close()
			switch {
			case err != nil:
				t.Error(err)
			case r.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), "busy"):
				refused++
			case r.StatusCode != http.StatusOK:
				t.Errorf("%d %q", r.StatusCode, body)
			}
		}
		return refused
	}
	first := refused()
	if s := showNamespace(t, p, "tenant").Stats; first == 0 || s.OverShare != first || s.Errors != first || s.OverQuota != 0 {
		t.Errorf("counted %+v, and %d were refused", s, first)
	}
	c.kill()
	c = mustUp(t, Config{Paths: p, Listen: anyPort, Budget: api.Budget{Time: 1}})
	if refused() == 0 {
		t.Error("none was refused with the next daemon")
	}
	n, err := client.SetQuota(ctx, "tenant", api.QuotaChange{Weight: api.SetLimit(7)})
	if err != nil || n.Quota.ShareWeight() != 7 {
		t.Errorf("the weight is %+v (%v)", n, err)
	}
	for _, weight := range []uint64{0, api.MaxNamespaceWeight + 1} {
		if _, err := client.SetQuota(ctx, "tenant", api.QuotaChange{Weight: api.SetLimit(weight)}); err == nil || !strings.Contains(err.Error(), "use 1 to 10000") {
			t.Errorf("a weight of %d: %v", weight, err)
		}
	}
	if n, err = client.SetQuota(ctx, "tenant", api.QuotaChange{Weight: api.NoLimit()}); err != nil || n.Quota.ShareWeight() != api.DefaultNamespaceWeight {
		t.Errorf("without a weight of its own, it is %+v (%v)", n, err)
	}
	c.kill()
	c = mustUp(t, Config{Paths: p, Listen: anyPort, Budget: api.Budget{Bandwidth: 10e9}})
	if got := refused(); got != 0 || c.node.Budget != (api.Budget{Bandwidth: 10e9}) {
		t.Errorf("%d were refused without a budget of time (%+v)", got, c.node.Budget)
	}
}

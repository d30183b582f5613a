package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/sandbox"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/manager"
	"github.com/lambdanic/lambdanic/internal/space"
	"github.com/lambdanic/lambdanic/internal/store"
)

// fakeManager has one function, "echo", and refuses certain names.
type fakeManager struct {
	deployed manager.Request
	removed  string
	quota    api.Quota
	keys     uint32
	networks []api.Network
}

func (m *fakeManager) BuildSource(_ context.Context, source []byte) (*api.Artifact, error) {
	switch string(source) {
	case "tar":
		return &api.Artifact{Image: "echo@sha256:0"}, nil
	case "large": // the disk became full
		return nil, fmt.Errorf("build: %w", unix.ENOSPC)
	case "busy":
		return nil, fmt.Errorf("build: %w: %w", sandbox.ErrLimit, sandbox.ErrBusy)
	case "missing":
		return nil, fmt.Errorf("build: %w", sandbox.ErrUnavailable)
	}
	return nil, fmt.Errorf("%w: echo.c:7: no", manager.ErrBuild)
}

func (m *fakeManager) Deploy(_ context.Context, r manager.Request) (*api.Function, error) {
	m.deployed = r
	switch r.Name {
	case "refused":
		return nil, fmt.Errorf("%w: nic: does not verify", manager.ErrRefused)
	case "invalid":
		return nil, manager.ErrInvalid
	case "large":
		return nil, fmt.Errorf("deploy: %w", space.ErrFull)
	case "many":
		return nil, fmt.Errorf("deploy: %w", &manager.QuotaError{Namespace: "tenant", Quota: "lambdas", Limit: 2, Used: 2, Wanted: 3})
	case "fat": // as when a kernel map is full
		return nil, fmt.Errorf("%w: nic: %w", manager.ErrRefused, unix.ENOSPC)
	case "storeless":
		return nil, errors.New("the store is gone")
	}
	return &api.Function{Name: r.Name, Image: r.Image}, nil
}

func (m *fakeManager) DeployFused(ctx context.Context, rs []manager.Request) (list []api.Function, err error) {
	for _, r := range rs {
		f, err := m.Deploy(ctx, r)
		if err != nil {
			return nil, err
		}
		list = append(list, *f)
	}
	return list, nil
}

func (m *fakeManager) Remove(_ context.Context, namespace, name string) error {
	m.removed = namespace + "/" + name
	_, err := m.Describe(context.Background(), namespace, name)
	return err
}

func (m *fakeManager) Describe(_ context.Context, _, name string) (*api.Function, error) {
	if name != "echo" {
		return nil, store.ErrNotFound
	}
	return &api.Function{Name: name, Replicas: 1}, nil
}

func (m *fakeManager) List(context.Context, string) ([]api.Function, error) {
	return []api.Function{{Name: "echo", Image: "echo@sha256:0", Replicas: 1}}, nil
}
func (m *fakeManager) Namespaces(context.Context) ([]api.Namespace, error) {
	return []api.Namespace{{Name: "default"}, {Name: "tenant", Number: 2, Over: []string{"too much"}, Stats: &api.Stats{Requests: 3}}}, nil
}

func (m *fakeManager) Namespace(_ context.Context, name string) (*api.Namespace, error) {
	if name != "tenant" {
		return nil, fmt.Errorf("%w: %s", manager.ErrNoNamespace, name)
	}
	return &api.Namespace{Name: name, Number: 2, Quota: m.quota}, nil
}

func (m *fakeManager) SetQuota(ctx context.Context, name string, change api.QuotaChange) (*api.Namespace, error) {
	m.quota = m.quota.Apply(change)
	return m.Namespace(ctx, name)
}

func (m *fakeManager) RemoveNamespace(_ context.Context, name string) error {
	switch name {
	case "tenant":
		return nil
	case "busy":
		return fmt.Errorf("namespace %s is %w", name, manager.ErrInUse)
	}
	return manager.ErrNoNamespace
}
func (m *fakeManager) Stats(context.Context) ([]api.FunctionStats, error) { return nil, nil }
func (m *fakeManager) Targets(context.Context) ([]api.NodeTarget, error) {
	return []api.NodeTarget{{Target: api.TargetNIC, Reason: "not root"}}, nil
}

func (m *fakeManager) Objects(context.Context, string, string) ([]api.Object, error) {
	return nil, nil
}
func (m *fakeManager) ReadObject(_ context.Context, _, _, object string) ([]byte, error) {
	if object != "flag" {
		return nil, backend.ErrNoObject
	}
	return []byte{0, 255}, nil
}
func (m *fakeManager) WriteObject(_ context.Context, _, _, object string, value []byte) error {
	if object != "flag" {
		return backend.ErrNoObject
	}
	if len(value) != 2 {
		return backend.ErrObjectSize
	}
	return nil
}

func (m *fakeManager) AddResource(_ context.Context, _, name, path string, decode func(any) error) (any, error) {
	if name != "echo" {
		return nil, store.ErrNotFound
	}
	var q api.RegionRequest
	if err := decode(&q); err != nil {
		return nil, err
	}
	if path != "rdma/regions" || q.Length > 4096 {
		return nil, backend.ErrResource
	}
	return &api.Region{RKey: 7, Length: uint32(q.Length)}, nil
}

func (m *fakeManager) ListResource(_ context.Context, _, name, path string) (any, error) {
	if name != "echo" {
		return nil, store.ErrNotFound
	}
	return []string{path}, nil
}

func (m *fakeManager) RemoveResource(_ context.Context, _, _, path string, number uint32) error {
	if path != "rdma/queue-pairs" || number != 0x401 {
		return backend.ErrNoResource
	}
	return nil
}

func TestResources(t *testing.T) {
	h := newGateway(t).Private()
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/system/function/echo/rdma/regions", "", 200, `["rdma/regions"]` + "\n"},
		{"GET", "/system/function/ecco/rdma/regions", "", 404, `{"error":"no such function"}` + "\n"},
		{"POST", "/system/function/echo/rdma/regions", `{"length":"4KiB"}`, 201, `{"rkey":7,"address":0,"length":4096,"method":0,"revision":0,"runs":0}` + "\n"},
		{"POST", "/system/function/echo/rdma/regions", `{"length":"8KiB"}`, 400, `{"error":"refused"}` + "\n"},
		{"POST", "/system/function/echo/rdma/regions", `{"size":1}`, 400, `{"error":"invalid request: read the body: json: unknown field \"size\""}` + "\n"},
		{"DELETE", "/system/function/echo/rdma/queue-pairs/0x401", "", 204, ""},
		{"DELETE", "/system/function/echo/rdma/queue-pairs/5", "", 404, `{"error":"no such"}` + "\n"},
		{"DELETE", "/system/function/echo/5", "", 404, `{"error":"no such"}` + "\n"},
		{"DELETE", "/system/function/echo/rdma/queue-pairs/", "", 400, `{"error":"invalid request: \"\" is not a number of 32 bits"}` + "\n"},
		{"DELETE", "/system/function/echo/rdma/queue-pairs/five", "", 400, `{"error":"invalid request: \"five\" is not a number of 32 bits"}` + "\n"},
	} {
		answer := do(t, h, c.method, c.path, c.body)
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != c.status || string(body) != c.want {
			t.Errorf("%s %s: %d %q, %v, want %d %q", c.method, c.path, answer.StatusCode, body, err, c.status, c.want)
		}
	}
}

func TestObjects(t *testing.T) {
	h := newGateway(t).Private()
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/system/function/echo/objects", "", 200, "[]\n"},
		{"GET", "/system/function/echo/objects/flag", "", 200, "\x00\xff"},
		{"GET", "/system/function/echo/objects/flak", "", 404, `{"error":"no such object"}` + "\n"},
		{"PUT", "/system/function/echo/objects/flag", "ab", 204, ""},
		{"PUT", "/system/function/echo/objects/flag", "abc", 400, `{"error":"wrong size"}` + "\n"},
		{"PUT", "/system/function/echo/objects/flak", "ab", 404, `{"error":"no such object"}` + "\n"},
	} {
		answer := do(t, h, c.method, c.path, c.body)
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != c.status || string(body) != c.want {
			t.Errorf("%s %s: %d %q, %v, want %d %q", c.method, c.path, answer.StatusCode, body, err, c.status, c.want)
		}
	}
}

func TestManagementNeedsCredentials(t *testing.T) {
	g := newGateway(t)
	for _, path := range []string{"/system/functions", "/system/function/echo", "/system/info", "/system/node", "/system/stats", "/system/ikernels", "/system/function/echo/objects/flag", "/system/namespaces", "/system/namespaces/details", "/system/namespace/tenant", "/system/"} {
		for _, credentials := range [][2]string{{"", ""}, {"admin", ""}, {"admin", "wrong"}, {"", "secret"}, {"secret", "admin"}} {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.SetBasicAuth(credentials[0], credentials[1])
			if got := do(t, g.Public(), "GET", path, "", "Authorization", r.Header.Get("Authorization")); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with %q: %d", path, credentials, got.StatusCode)
			}
		}
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.SetBasicAuth("admin", "secret")
	if got := do(t, g.Public(), "GET", "/system/functions", "", "Authorization", r.Header.Get("Authorization")); got.StatusCode != 200 {
		t.Errorf("with the right credentials: %d", got.StatusCode)
	}
	if got := do(t, g.Private(), "GET", "/system/functions", ""); got.StatusCode != 200 {
		t.Errorf("on the private socket: %d", got.StatusCode)
	}
	g.Credentials = Credentials{}
	r.SetBasicAuth("", "")
	if got := do(t, g.Public(), "GET", "/system/info", "", "Authorization", r.Header.Get("Authorization")); got.StatusCode != 401 {
		t.Errorf("empty credentials open the door: %d", got.StatusCode)
	}
}

func TestCredentialsAreMadeOnceAndKept(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadCredentials(dir)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := LoadCredentials(dir); err != nil || second != first || len(first.Password) < 20 {
		t.Errorf("%v, then %v (%v)", first, second, err)
	}
	path := filepath.Join(dir, "basic-auth-password")
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", fi.Mode(), err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := LoadCredentials(dir); err == nil {
		t.Errorf("an empty password was taken: %v", c)
	}
}

func TestManagementErrors(t *testing.T) {
	h := newGateway(t).Private()
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"POST", "/system/functions", `{"service":"web","image":"i"}`, 200},
		{"POST", "/system/functions", `{"service":"refused","image":"i"}`, 422},
		{"POST", "/system/functions", `{"service":"invalid","image":"i"}`, 400},
		{"POST", "/system/functions", `{"service":"storeless","image":"i"}`, 500},
		{"POST", "/system/functions", `{"service":"large","image":"i"}`, 507},
		{"POST", "/system/functions", `{"service":"fat","image":"i"}`, 422},
		{"POST", "/system/functions", `{"service":"many","image":"i"}`, 403},
		{"POST", "/system/fused", `{"functions":[{"service":"many","image":"i"}]}`, 403},
		{"POST", "/system/functions", `{"service":"web","secrets":["s"]}`, 400},
		{"POST", "/system/functions", `{"service":"web","sevrice":"x"}`, 400},
		{"POST", "/system/functions", `{"service":"web","annotations":{"lambdanic.target":"nic"}}`, 400},
		{"POST", "/system/functions", `{"service":"web","annotations":{"com.example":"nic"}}`, 200},
		{"POST", "/system/functions", `{"service":"web"} {}`, 400},
		{"POST", "/system/functions", `{"service":7}`, 400},
		{"POST", "/system/functions", `[]`, 400},
		{"POST", "/system/functions", ``, 400},
		{"POST", "/system/functions", `{"service":"` + strings.Repeat("x", maxJSON) + `"}`, 413},
		{"PUT", "/system/functions", `{"service":"echo","image":"i"}`, 200},
		{"PUT", "/system/functions", `{"service":"new","image":"i"}`, 404},
		{"PATCH", "/system/functions", `{}`, 405},
		{"DELETE", "/system/functions", `{"functionName":"echo"}`, 202},
		{"DELETE", "/system/functions", `{"functionName":"nope"}`, 404},
		{"DELETE", "/system/functions", `{`, 400},
		{"GET", "/system/function/echo", "", 200},
		{"GET", "/system/function/nope", "", 404},
		{"GET", "/system/info", "", 200},
		{"GET", "/system/node", "", 200},
		{"GET", "/system/stats", "", 200},
		{"GET", "/system/nope", "", 404},
		{"POST", "/system/artifacts", "tar", 200},
		{"POST", "/system/artifacts", "bad", 422},
		{"POST", "/system/artifacts", "large", 507},
		{"POST", "/system/artifacts", "busy", 503},
		{"POST", "/system/artifacts", "missing", 500},
	} {
		if r := do(t, h, c.method, c.path, c.body); r.StatusCode != c.want {
			t.Errorf("%s %s %.60s: %d %q, want %d", c.method, c.path, c.body, r.StatusCode, bodyOf(t, r), c.want)
		}
	}
	r := do(t, h, "POST", "/system/artifacts", "bad")
	var e api.Error
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil || !strings.Contains(e.Error, "echo.c:7") {
		t.Errorf("%+v (%v)", e, err)
	}
}

// OpenFaaS's own types must be able to read our answers and write our requests.
func TestSpeaksOpenFaaS(t *testing.T) {
	g := newGateway(t)
	r := do(t, g.Private(), "GET", "/system/functions", "")
	var list []types.FunctionStatus
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil || len(list) != 1 || list[0].Name != "echo" || list[0].Replicas != 1 {
		t.Errorf("%+v (%v)", list, err)
	}
	var info struct{ Provider types.ProviderInfo }
	r = do(t, g.Private(), "GET", "/system/info", "")
	if err := json.NewDecoder(r.Body).Decode(&info); err != nil || *info.Provider.Version != (types.VersionInfo{Release: "v1", SHA: "c0ffee"}) {
		t.Errorf("%+v (%v)", info, err)
	}
	body, err := json.Marshal(types.FunctionDeployment{
		Service: "web", Image: "i", Namespace: "tenant", EnvVars: map[string]string{"a": "b"},
		Annotations: &map[string]string{api.AnnotationTargets: "process, nic", api.AnnotationService + "memcached": "192.0.2.1:11211"},
	})
	if err != nil {
		t.Fatal(err)
	}
	do(t, g.Private(), "POST", "/system/functions", string(body))
	got := g.Manager.(*fakeManager).deployed
	if got.Namespace != "tenant" || !reflect.DeepEqual(got.Targets, []api.Target{"process", "nic"}) ||
		got.Services["memcached"] != "192.0.2.1:11211" || got.Env["a"] != "b" {
		t.Errorf("the manager was asked for %+v", got)
	}
	body, _ = json.Marshal(types.DeleteFunctionRequest{FunctionName: "echo"})
	do(t, g.Private(), "DELETE", "/system/functions?namespace=tenant", string(body))
	if removed := g.Manager.(*fakeManager).removed; removed != "tenant/echo" {
		t.Errorf("removed %s", removed)
	}
}

func FuzzDeployBody(f *testing.F) {
	f.Add(`{"service":"web","image":"i","annotations":{"lambdanic.targets":"nic,,"}}`)
	f.Add(`{"labels":null,"annotations":{}}`)
	f.Fuzz(func(t *testing.T, body string) {
		g := New(Config{Manager: &fakeManager{}})
		if r := do(t, g.Private(), "POST", "/system/functions", body); r.StatusCode >= 500 && !strings.Contains(body, "storeless") {
			t.Errorf("%d for %q", r.StatusCode, body)
		}
	})
}

func (m *fakeManager) AddKey(_ context.Context, namespace string) (*api.NewKey, error) {
	m.keys++
	return &api.NewKey{Number: m.keys, Key: api.Key{Namespace: namespace, Number: m.keys}}, nil
}

func (m *fakeManager) RemoveKey(_ context.Context, namespace string, number uint32) error {
	if number > m.keys {
		return fmt.Errorf("%w: namespace %s has no key %d", manager.ErrNoKey, namespace, number)
	}
	return nil
}

func (m *fakeManager) RequireTags(_ context.Context, name string, required bool) (*api.Namespace, error) {
	return &api.Namespace{Name: name, Keys: &api.NamespaceKeys{Required: required}}, nil
}

func (m *fakeManager) AddNetwork(_ context.Context, name string, network api.Network) (*api.Namespace, error) {
	if slices.Contains(m.networks, network) {
		return nil, fmt.Errorf("network %s is %w", network, manager.ErrInUse)
	}
	m.networks = append(m.networks, network)
	return &api.Namespace{Name: name, Networks: m.networks}, nil
}

func (m *fakeManager) RemoveNetwork(_ context.Context, name string, network api.Network) (*api.Namespace, error) {
	i := slices.Index(m.networks, network)
	if i < 0 {
		return nil, fmt.Errorf("%w: namespace %s has no network %s", manager.ErrNoNetwork, name, network)
	}
	m.networks = slices.Delete(m.networks, i, i+1)
	return &api.Namespace{Name: name, Networks: m.networks}, nil
}

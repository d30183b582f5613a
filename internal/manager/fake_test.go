package manager

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/internal/worker"
)

// fakeBackend keeps what it runs in a file, as a NIC keeps it in pinned maps: it outlives the process that deployed.
type fakeBackend struct {
	path string
	// refuse, where set, says why the backend refuses a deployment.
	refuse func(backend.Deployment) error
	// deploys counts the deployments that it took.
	deploys int
	// fused are the programs that it took.
	fused []backend.Fused
	// event, where set, is called before and after each action of the backend, and may make it fail.
	event func(ctx context.Context, what string) error
	// limits are those that it keeps.
	limits atomic.Pointer[backend.Limits]
}

func (b *fakeBackend) happens(ctx context.Context, what string) error {
	if b.event == nil {
		return nil
	}
	return errors.Join(b.event(ctx, what), ctx.Err())
}

func (b *fakeBackend) load() map[uint32]backend.Status {
	running := map[uint32]backend.Status{}
	raw, err := os.ReadFile(b.path)
	if err == nil {
		err = json.Unmarshal(raw, &running)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
	return running
}

func (b *fakeBackend) save(running map[uint32]backend.Status) error {
	raw, err := json.Marshal(running)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.path+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(b.path+".new", b.path)
}

func (b *fakeBackend) Deploy(ctx context.Context, d backend.Deployment) error {
	if err := b.happens(ctx, "before deploy"); err != nil {
		return err
	}
	if b.refuse != nil {
		if err := b.refuse(d); err != nil {
			return err
		}
	}
	b.deploys++
	running := b.load()
	running[d.Workload] = backend.Status{
		Workload: d.Workload, Revision: d.Revision, Endpoint: netip.MustParseAddrPort("192.0.2.1:4370"),
	}
	return errors.Join(b.save(running), b.happens(ctx, "after deploy"))
}

// DeployFused deploys all, each by itself, so that a test can die in between.
func (b *fakeBackend) DeployFused(ctx context.Context, f backend.Fused) error {
	if b.refuse != nil {
		for _, d := range f.Serving {
			if err := b.refuse(d); err != nil {
				return err
			}
		}
	}
	b.fused = append(b.fused, f)
	for _, d := range f.Serving {
		if err := b.Deploy(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (b *fakeBackend) Remove(ctx context.Context, workload uint32) error {
	if err := b.happens(ctx, "before remove"); err != nil {
		return err
	}
	running := b.load()
	delete(running, workload)
	return errors.Join(b.save(running), b.happens(ctx, "after remove"))
}

func (b *fakeBackend) Status(ctx context.Context) ([]backend.Status, error) {
	if err := b.happens(ctx, "status"); err != nil {
		return nil, err
	}
	var all []backend.Status
	for _, s := range b.load() {
		all = append(all, s)
	}
	return all, nil
}

func (b *fakeBackend) Limit(ctx context.Context, l backend.Limits) error {
	if err := b.happens(ctx, "limit"); err != nil {
		return err
	}
	b.limits.Store(&l)
	return nil
}

func (b *fakeBackend) Endpoint(workload uint32) (netip.AddrPort, bool) {
	s, ok := b.load()[workload]
	return s.Endpoint, ok
}

// fakeArtifacts has an artifact for every digest: one that needs memcached, and with a digest that ends in a, one that keeps
// state too; with one in b, one for the NIC alone; in c, one with a variable to be migrated; in d, one that the compiler refused for the
// NIC; in 9, a program of two.
type fakeArtifacts struct{}

func (f fakeArtifacts) Manifest(digest string) (*api.Manifest, error) {
	a, err := f.Get(digest)
	if err != nil {
		return nil, err
	}
	return &a.Manifest, nil
}

func (fakeArtifacts) Get(digest string) (*artifact.Artifact, error) {
	if strings.HasSuffix(digest, "f") {
		return nil, artifact.ErrNotFound
	}
	spec := api.Spec{
		Name: "web", Services: []api.ServiceSpec{{Name: "memcached", Protocol: "memcached", Address: "host:11211"}},
	}.Default()
	a := &artifact.Artifact{Digest: digest, Manifest: api.Manifest{Spec: spec}, BPF: []byte("bpf"), Native: []byte("native")}
	if strings.HasSuffix(digest, "a") {
		a.Manifest.Layouts.Kept = "counters"
	}
	if strings.HasSuffix(digest, "b") {
		a.Manifest.Spec.Targets = []api.Target{api.TargetNIC}
	}
	if strings.HasSuffix(digest, "c") {
		a.Manifest.Layouts.Migrated = "counters"
	}
	if strings.HasSuffix(digest, "d") {
		a.BPF, a.Manifest.Refused = nil, []api.Refusal{{Target: api.TargetNIC, Reason: "web.c:7: no"}}
	}
	if strings.HasSuffix(digest, "e") {
		a.Manifest.Spec.P4, a.Manifest.Spec.Targets = "stage.p4", []api.Target{api.TargetNIC}
	}
	if strings.HasSuffix(digest, "7") {
		a.Manifest.Spec.Breaker = api.BreakerSpec{FaultPercent: 50, Requests: 100}
	}
	if strings.HasSuffix(digest, "9") {
		a.Manifest.Members = []api.Member{{Name: "one"}, {Name: "two"}}
	}
	return a, nil
}

// fakeFuse names members by the last digit of their digests.
func fakeFuse(_ context.Context, members []*artifact.Artifact) (*artifact.Artifact, error) {
	a := &artifact.Artifact{Digest: "sha256:" + strings.Repeat("0", 63) + "9"}
	a.Manifest.Spec.Name = "fused"
	for _, m := range members {
		a.Manifest.Members = append(a.Manifest.Members, api.Member{Name: "m_" + m.Digest[len(m.Digest)-1:], Lambda: m.Digest})
	}
	return a, nil
}

// node is a manager with all that it needs, in a directory that outlives it.
type node struct {
	*Manager
	nic, process *fakeBackend
	stop         func() // the worker
}

func openNode(t *testing.T, dir string, step func(string)) *node {
	t.Helper()
	return openOn(t, dir, openStore(t, dir, nil), step)
}

func openStore(t *testing.T, dir string, wrap func(clientv3.KV) clientv3.KV) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), store.Config{DataDir: filepath.Join(dir, "d"), SocketDir: filepath.Join(dir, "s"), Wrap: wrap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func openOn(t *testing.T, dir string, st *store.Store, step func(string)) *node {
	t.Helper()
	n := &node{
		nic:     &fakeBackend{path: filepath.Join(dir, "nic")},
		process: &fakeBackend{path: filepath.Join(dir, "process")},
	}
	w, stop := follow(t, worker.Config{Node: "test", Store: st, Artifacts: fakeArtifacts{}, Places: []backend.Place{
		{Target: api.TargetNIC, Backend: n.nic, Host: netip.MustParseAddr("192.0.2.254")},
		{Target: api.TargetProcess, Backend: n.process, Host: netip.MustParseAddr("127.0.0.1")},
	}})
	n.stop = stop
	n.Manager = New(Config{Store: st, Node: w, Nodes: []string{"test"}, Artifacts: fakeArtifacts{}, Fuse: fakeFuse, Step: step})
	if err := n.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// follow has a worker follow the store until stop is called, or the test ends.
func follow(t *testing.T, cfg worker.Config) (w *worker.Worker, stop func()) {
	t.Helper()
	w = worker.New(cfg)
	stop = sync.OnceFunc(w.Start(t.Context()))
	t.Cleanup(stop)
	return w, stop
}

// answered waits until the node has answered all its placements.
func (n *node) answered(t *testing.T) {
	t.Helper()
	functions, err := n.Store.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range functions {
		if _, err := n.Store.Await(t.Context(), &functions[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// image returns the name of an artifact that fakeArtifacts has.
func image(last string) string { return "web@sha256:" + strings.Repeat("0", 63) + last }

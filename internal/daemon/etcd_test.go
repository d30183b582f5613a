package daemon

import (
	"os"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/etcd"
)

// The store may be an etcd that somebody else runs: a daemon that is killed leaves there what the next one finds, and while etcd is away,
// what runs serves on and can be looked at.
func TestExternalEtcd(t *testing.T) {
	server := etcd.StartTLS(t)
	p := newInstance(t, "u")
	remote := store.Remote{Endpoints: []string{server.URL}, CA: server.CA, Certificate: server.Certificate, Key: server.Key}
	cfg := Config{Paths: p, Listen: anyPort, Etcd: remote}
	first := mustUp(t, cfg)
	if want := "etcd at " + server.URL; first.node.Store != want {
		t.Errorf("the node has its store %q, want %q", first.node.Store, want)
	}
	f := deployWebServer(t, p)
	want := get(t, first.node.Listen)
	first.kill()
	if _, err := up(t, Config{Paths: p, Listen: anyPort}); err == nil || !strings.Contains(err.Error(), "is etcd at "+server.URL+": give --etcd as before") {
		t.Fatalf("without --etcd, up says %v", err)
	}
	second := mustUp(t, cfg)
	if got := get(t, second.node.Listen); got != want {
		t.Errorf("the next daemon's gateway answers %q, want %q", got, want)
	}
	if again := describeWeb(t, p); again.Revision != f.Revision || again.Workload != f.Workload {
		t.Errorf("the next daemon has %+v, want %+v", again, f)
	}
	server.Kill()
	if got := get(t, second.node.Listen); got != want {
		t.Errorf("without etcd, the gateway answers %q, want %q", got, want)
	}
	if again := describeWeb(t, p); again.Revision != f.Revision {
		t.Errorf("without etcd, the function is %+v", again)
	}
	_, err := NewClient(p).Deploy(t.Context(), types.FunctionDeployment{Service: "web", Image: f.Image})
	if err == nil || !strings.Contains(err.Error(), "the store does not answer") {
		t.Errorf("without etcd, a deploy says %v", err)
	}
	server.Again(t)
	eventually(t, "a deploy", func() bool {
		_, err := NewClient(p).Deploy(t.Context(), types.FunctionDeployment{Service: "web", Image: f.Image})
		return err == nil
	})
	if err := Down(t.Context(), p, true); err != nil {
		t.Fatal(err)
	}
	third := mustUp(t, cfg)
	if list, err := NewClient(p).List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("after down --purge, the instance has %v (%v)", list, err)
	}
	third.kill()
}

// An instance with a store of its own does not silently begin anew with another.
func TestEtcdBesideAStore(t *testing.T) {
	server := etcd.Start(t)
	p := newInstance(t, "v")
	mustUp(t, Config{Paths: p}).kill()
	_, err := up(t, Config{Paths: p, Etcd: store.Remote{Endpoints: []string{server.URL}}})
	if err == nil || !strings.Contains(err.Error(), "has a store of its own in "+p.store()+": leave out --etcd") {
		t.Errorf("up says %v", err)
	}
	if _, err := os.Stat(p.etcd()); err == nil {
		t.Errorf("it made a note of an etcd that it did not take")
	}
}

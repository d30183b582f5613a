package daemon

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// While a lambda is being deployed, however long the kernel takes to verify it, others are called by HTTP and their counters are read.
func TestCallsBesideADeploy(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "b")
	ctx, stop := context.WithCancel(t.Context())
	d, err := Start(ctx, Config{Paths: p, Listen: anyPort})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	f := deployWebServer(t, p)
	a, err := compiler.Build(ctx, "../../lambdas/web_server", compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := d.nics.list()[0].Prepare(ctx, backend.Deployment{
		Namespace: api.DefaultNamespace, Name: "slow", Workload: f.Workload + 1, Revision: 1, Spec: a.Manifest.Spec, BPF: a.BPF,
	})
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan error, 1)
	go func() {
		for range 100 {
			get(t, d.public.Addr().String())
		}
		_, err := NewClient(p).Stats(ctx)
		called <- err
	}()
	select {
	case err := <-called:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a call waits for the deploy")
	}
	if err := slow.Drop(); err != nil {
		t.Error(err)
	}
}

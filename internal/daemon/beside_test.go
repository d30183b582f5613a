package daemon

import (
	"os"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic"
)

// While a lambda is being deployed, however long the kernel takes to verify it, others are called by HTTP and their counters are read.
func TestCallsBesideADeploy(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "b")
	ctx := t.Context()
	d := serve(t, Config{Paths: p, Listen: anyPort})
	f := deployWebServer(t, p)
	a, err := compiler.Build(ctx, "../../lambdas/web_server", compiler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := d.worker.Places()[0].Backend.(*nic.NIC).Prepare(ctx, backend.Deployment{
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

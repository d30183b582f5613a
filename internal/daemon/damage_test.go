package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/compiler/artifact"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/smalldisk"
)

// A damaged store is told in one line, which names the file and what to do; what it says helps.
func TestUpOnADamagedStore(t *testing.T) {
	p := newInstance(t, "r")
	cfg := Config{Paths: p, Listen: anyPort}
	c := mustUp(t, cfg)
	f := deployWebServer(t, p)
	c.kill()
	database := filepath.Join(p.store(), "member", "snap", "db")
	if err := os.Truncate(database, 8192); err != nil {
		t.Fatal(err)
	}
	_, err := up(t, cfg)
	if err == nil {
		t.Fatal("it is up")
	}
	for _, part := range []string{store.ErrDamaged.Error(), database, "restore the data directory from a backup, or move " + p.store() + " away"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if strings.Count(strings.TrimSpace(err.Error()), "\n") > 0 {
		t.Errorf("it says more than a line: %v", err)
	}
	if err := os.Rename(p.store(), p.store()+".damaged"); err != nil {
		t.Fatal(err)
	}
	ageArtifacts(t, p, artifact.DigestOf(f.Image)) // which the new store knows nothing of
	c = mustUp(t, cfg)
	again, err := NewClient(p).Deploy(t.Context(), types.FunctionDeployment{Service: "web", Image: f.Image})
	if err != nil || again.State != api.StateReady {
		t.Fatalf("deployed again: %+v, %v", again, err)
	}
	get(t, c.node.Listen)
}

// When etcd cannot go on, the daemon ends in good order and says why.
func TestServeEndsWithTheStore(t *testing.T) {
	disk := smalldisk.New(t, "96m")
	p := newInstance(t, "s")
	p.Data = filepath.Join(disk, p.Instance)
	d, err := Start(t.Context(), Config{Paths: p})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- d.Serve(t.Context()) }()
	f := deployWebServer(t, p)
	smalldisk.Fill(t, disk)
	for err == nil { // until its reserve is used up
		err = d.store.Report(t.Context(), d.worker.Node(), store.Status{Workload: f.Workload, Reason: strings.Repeat("x", 100<<10)})
	}
	err = <-served
	for _, part := range []string{"no space left on device", p.Data, "`lambdanic up`"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("it ends with %v, want %q", err, part)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

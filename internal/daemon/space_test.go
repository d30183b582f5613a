package daemon

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/internal/space"
	"github.com/lambdanic/lambdanic/test/smalldisk"
)

// A first up without space says how much it needs and where, and leaves that place as it was.
func TestFirstUpOnASmallDisk(t *testing.T) {
	disk := smalldisk.New(t, "8m")
	p := newInstance(t, "p")
	p.Data = filepath.Join(disk, "data", p.Instance)
	cfg := Config{Paths: p, Listen: anyPort}
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(childEnv, string(raw))
	for how, start := range map[string]func() error{
		"up":    func() error { _, err := up(t, cfg); return err },
		"up -d": func() error { _, err := Detach(t.Context(), p, nil); return err },
	} {
		err := start()
		if err == nil {
			t.Fatalf("%s: it is up", how)
		}
		for _, part := range []string{p.Data, "8.0 MiB free", "needs 64 MiB", "--data-dir"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", how, err, part)
			}
		}
		if strings.Count(strings.TrimSpace(err.Error()), "\n") > 0 {
			t.Errorf("%s says more than a line: %v", how, err)
		}
		left, err := os.ReadDir(disk)
		if err != nil || len(left) > 0 {
			t.Errorf("%s leaves %v (%v)", how, left, err)
		}
		if _, err := os.Stat(p.Run); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s leaves %s (%v)", how, p.Run, err)
		}
	}
}

// On a full disk everything serves, nothing is deployed, and functions can be removed; nobody dies.
func TestFullDisk(t *testing.T) {
	disk := smalldisk.New(t, "128m")
	p := newInstance(t, "q")
	p.Data = filepath.Join(disk, p.Instance)
	cfg := Config{Paths: p, Listen: anyPort}
	c := mustUp(t, cfg)
	f := deployWebServer(t, p)
	want := get(t, c.node.Listen)
	again := types.FunctionDeployment{Service: "web", Image: f.Image}
	empty := smalldisk.Fill(t, disk)
	client := NewClient(p)

	_, err := client.Deploy(t.Context(), again)
	for _, part := range []string{space.ErrFull.Error(), p.Data, "0 B free", "needs 32 MiB"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("deploy says %v, want %q", err, part)
		}
	}
	if _, err := Build(t.Context(), p, "../../lambdas/kv_client"); err == nil || !strings.Contains(err.Error(), "needs 32 MiB") {
		t.Errorf("build says %v", err)
	}
	if got := get(t, c.node.Listen); got != want {
		t.Errorf("the function answers %q, want %q", got, want)
	}
	if now, err := client.Describe(t.Context(), "", "web"); err != nil || now.Revision != f.Revision {
		t.Errorf("described as %+v (%v)", now, err)
	}
	if _, err := up(t, cfg); err == nil || !strings.Contains(err.Error(), "already up") || !strings.Contains(err.Error(), "end that process and run `lambdanic up --name ") {
		t.Errorf("a second up says %v", err)
	}
	if err := client.Remove(t.Context(), "", "web"); err != nil {
		t.Errorf("remove: %v", err)
	}
	c.kill()
	if _, err := up(t, cfg); err == nil || !strings.Contains(err.Error(), "needs 8.0 MiB") {
		t.Errorf("up on the full disk says %v", err)
	}
	if _, err := Build(t.Context(), p, "../../lambdas/kv_client"); err == nil || !strings.Contains(err.Error(), "needs 32 MiB") {
		t.Errorf("build without a daemon says %v", err)
	}

	empty()
	c = mustUp(t, cfg)
	if list, err := client.List(t.Context(), ""); err != nil || len(list) > 0 {
		t.Errorf("the next daemon has %+v (%v)", list, err)
	}
	if _, err := client.Deploy(t.Context(), again); err != nil {
		t.Errorf("with space again, deploy says %v", err)
	}
	if got := get(t, c.node.Listen); got != want {
		t.Errorf("deployed again, it answers %q, want %q", got, want)
	}
}

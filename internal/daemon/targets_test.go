package daemon

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/test/nothing"
)

// A new target is a package (test/nothing) and a line in targets: the node lists it, specs name it, the compiler compiles for it, and
// lambdas are deployed to it, replaced and removed.
func TestNewTarget(t *testing.T) {
	defer func(before []func(*Config) backend.Target) { targets = before }(targets)
	targets = append(slices.Clone(targets), func(c *Config) backend.Target { return nothing.New(c.site(nothing.Name)) })

	ctx := t.Context()
	p := newInstance(t, "w")
	serve(t, Config{Paths: p})
	client := NewClient(p)
	node, err := client.Node(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if last := node.Targets[len(node.Targets)-1]; last.Target != nothing.Name || !last.Available {
		t.Fatalf("the node has %+v", node.Targets)
	}
	for revision := uint32(1); revision <= 2; revision++ {
		f := deployOn(t, p, nothing.Name)
		if f.Target != nothing.Name || f.State != api.StateReady || f.Revision != revision {
			t.Errorf("%+v, want revision %d ready on %s", f, revision, nothing.Name)
		}
	}
	if err := client.Remove(ctx, "", "web"); err != nil {
		t.Fatal(err)
	}
	if node, err = client.Node(ctx); err != nil || node.Targets[len(node.Targets)-1].Lambdas != 0 {
		t.Errorf("after the function was removed, the node has %+v (%v)", node.Targets, err)
	}
}

// deployOn deploys a lambda whose spec lists one target.
func deployOn(t *testing.T, p Paths, target api.Target) *api.Function {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		api.SpecFile: "name: web\ntargets: [" + string(target) + "]\n",
		"web.c":      "#include <lambda.h>\n\nint web(EXTRACTED_HEADERS_T *headers, MATCH_DATA_T *match_data)\n{\n\treturn lambda_fail(headers, LN_STATUS_NOT_FOUND);\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Build(t.Context(), p, dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewClient(p).Deploy(t.Context(), types.FunctionDeployment{Service: "web", Image: a.Image})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// serve starts a daemon in this process, for the rest of the test.
func serve(t *testing.T, cfg Config) *Daemon {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	d, err := Start(ctx, cfg)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- d.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

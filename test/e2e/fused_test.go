package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/patient"
)

// wantFused checks with whom a function shares its program.
func (i *instance) wantFused(name string, revision uint32, with ...string) {
	i.t.Helper()
	f := i.describe(name)
	switch {
	case f.State != api.StateReady || f.Target != api.TargetNIC || f.Revision != revision:
		i.t.Errorf("%+v, want revision %d ready on the NIC", f, revision)
	case with == nil && f.Fused != nil, with != nil && (f.Fused == nil || !slices.Equal(f.Fused.With, with)):
		i.t.Errorf("%s is fused: %+v, want with %v", name, f.Fused, with)
	}
}

// Three lambdas as one program: each is a function of its own in all that its users and operators see.
func TestFused(t *testing.T) {
	i := up(t)
	m := startMemcached(t, i.hostAddr())
	const get, set, key = "0", "1", "a-key"
	pixels := strings.Repeat("\x10\x20\x30\xff", 64)
	i.run("deploy", "lambdas/image_transformer")
	_, grey, _ := i.post("image_transformer", "0", []byte(pixels))
	works := func() {
		t.Helper()
		i.expect("web_server", "0", "/hello", http.StatusOK, hello)
		i.expect("kv_client", set, fmt.Sprintf("%c%svalue", len(key), key), http.StatusOK, "STORED")
		i.expect("kv_client", get, key, http.StatusOK, key+"=value")
	}
	fuse := []string{
		"deploy", "--fused", "--service", fmt.Sprintf("memcached=host:%d", m.Port),
		"lambdas/web_server", filepath.Join(patient.Lambdas(t, filepath.Join(root, "lambdas")), "kv_client"), "lambdas/image_transformer",
	}
	i.run(fuse...)
	works()
	i.expect("image_transformer", "0", pixels, http.StatusOK, string(grey))
	i.wantFused("web_server", 1, "image_transformer", "kv_client")
	i.wantFused("image_transformer", 2, "kv_client", "web_server")
	i.refused("program of several lambdas", "object", "list", "kv_client")
	if out := string(i.run("describe", "kv_client")); !strings.Contains(out, "fused with image_transformer, web_server: fused@sha256:") {
		t.Errorf("describe says\n%s", out)
	}
	for _, s := range query[[]api.FunctionStats](i, "stats") {
		if s.Name == "web_server" && s.Requests != 1 || s.Name == "kv_client" && s.Requests != 2 {
			t.Errorf("%s has counted %d requests", s.Name, s.Requests)
		}
	}

	stop := i.load("web_server", 2)
	i.run(fuse...)
	i.wantFused("web_server", 2, "image_transformer", "kv_client")
	i.run("deploy", "lambdas/web_server")
	i.wantFused("web_server", 3)
	i.wantFused("kv_client", 2, "image_transformer")
	works()
	i.kill()
	i.start()
	i.wantFused("kv_client", 2, "image_transformer")
	i.run(fuse...)
	if n := stop(); n == 0 {
		t.Error("no call was made")
	}
	works()

	i.run("remove", "image_transformer")
	works()
	i.wantFused("kv_client", 3, "web_server")
	i.run("down") // as a reboot does: all is rebuilt from the store
	i.start()
	works()
	i.wantFused("kv_client", 3, "web_server")
	i.run("deploy", "lambdas/web_server", "--target", "process")
	i.wantFused("kv_client", 3, []string{}...)
	works()

	if out, err := i.try("deploy", "--fused", "lambdas/web_server", "lambdas/web_server"); err == nil || !strings.Contains(out, "named twice") {
		t.Errorf("a lambda twice: %v\n%s", err, out)
	}
}

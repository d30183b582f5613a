package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/compiler/artifact"
)

// ageArtifact makes an artifact older than the ones that are kept for a deploy to come.
func ageArtifact(t *testing.T, p Paths, image string) {
	t.Helper()
	digest := artifact.DigestOf(image)
	long := time.Now().Add(-2 * keepUnused)
	if err := os.Chtimes(filepath.Join(p.Artifacts(), "blobs", strings.Replace(digest, ":", "/", 1)), long, long); err != nil {
		t.Fatal(err)
	}
}

// What is deployed no more goes from the disk, with an update, a removal and the next start, unless it was built within the hour.
func TestUnusedArtifactsGo(t *testing.T) {
	p := newInstance(t, "t")
	cfg := Config{Paths: p}
	c := mustUp(t, cfg)
	client := NewClient(p)
	build := func(name string, old bool) string {
		t.Helper()
		a, err := Build(t.Context(), p, filepath.Join("../../lambdas", name))
		if err != nil {
			t.Fatal(err)
		}
		if old {
			ageArtifact(t, p, a.Image)
		}
		return artifact.DigestOf(a.Image)
	}
	deploy := func(name, digest string) {
		t.Helper()
		_, err := client.Deploy(t.Context(), types.FunctionDeployment{Service: "it", Image: name + "@" + digest})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when, digest string, there bool) {
		t.Helper()
		artifacts, err := artifact.Open(p.Artifacts(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := artifacts.Get(digest); (err == nil) != there || err != nil && !errors.Is(err, artifact.ErrNotFound) {
			t.Errorf("%s: %v, want it there: %v", when, err, there)
		}
	}
	web := build("web_server", true)
	deploy("web_server", web)
	expect("deployed", web, true)
	kv := build("kv_client", true)
	deploy("kv_client", kv)
	expect("replaced", web, false)
	expect("deployed", kv, true)
	web = build("web_server", false) // which somebody is about to deploy
	if err := client.Remove(t.Context(), "", "it"); err != nil {
		t.Fatal(err)
	}
	expect("removed", kv, false)
	expect("built within the hour", web, true)
	c.kill()
	build("web_server", true) // which nobody deployed
	mustUp(t, cfg)
	expect("after the next start", web, false)
}

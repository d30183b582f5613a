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

// ageArtifacts makes artifacts older than the ones that are kept for a deploy to come.
func ageArtifacts(t *testing.T, p Paths, digests ...string) {
	t.Helper()
	long := time.Now().Add(-2 * keepUnused)
	for _, digest := range digests {
		if err := os.Chtimes(filepath.Join(p.Artifacts(), "blobs", strings.Replace(digest, ":", "/", 1)), long, long); err != nil {
			t.Fatal(err)
		}
	}
}

// What is deployed no more goes from the disk, with an update, a removal and the next start, unless it was built or in use within the hour.
func TestUnusedArtifactsGo(t *testing.T) {
	p := newInstance(t, "t")
	cfg := Config{Paths: p}
	c := mustUp(t, cfg)
	client := NewClient(p)
	build := func(name string) string {
		t.Helper()
		a, err := Build(t.Context(), p, filepath.Join("../../lambdas", name))
		if err != nil {
			t.Fatal(err)
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
	web, kv := build("web_server"), build("kv_client")
	deploy("web_server", web)
	ageArtifacts(t, p, web)
	deploy("kv_client", kv)
	expect("just replaced", web, true)
	ageArtifacts(t, p, kv)
	deploy("web_server", web) // as before
	expect("just replaced", kv, true)
	ageArtifacts(t, p, web, kv)
	if err := client.Remove(t.Context(), "", "it"); err != nil {
		t.Fatal(err)
	}
	expect("replaced long ago", kv, false)
	expect("just removed", web, true)
	c.kill()
	ageArtifacts(t, p, web)
	kv = build("kv_client") // which somebody is about to deploy
	mustUp(t, cfg)
	expect("removed long ago", web, false)
	expect("just built", kv, true)
}

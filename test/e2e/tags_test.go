package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// Long messages pass with tags on each packet, on either target: by the gateway, and by a client that has read the key's file.
func TestTags(t *testing.T) {
	i := up(t)
	file := filepath.Join(t.TempDir(), "tenant.key")
	i.run("namespace", "key", "add", "tenant", "--out", file)
	i.refused("exists", "namespace", "key", "add", "tenant", "--out", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v (%v)", info, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := api.ParseKey(string(text))
	if err != nil || key.Namespace != "tenant" || key.Number != 1 {
		t.Fatalf("%q is %v (%v)", text, key, err)
	}
	i.run("deploy", "lambdas/image_transformer")
	i.run("deploy", "-n", "tenant", "lambdas/image_transformer")
	i.run("deploy", "-n", "tenant", "--name", "native", "--target", "process", "lambdas/image_transformer")
	i.run("namespace", "tags", "tenant", "required")
	if show := string(i.run("namespace", "show", "tenant")); !strings.Contains(show, "tags required") || strings.Contains(show, strings.TrimSpace(string(text))) {
		t.Errorf("shown as\n%s", show)
	}
	pixels := bytes.Repeat([]byte("\x10\x20\x30\xff\x40\x41\x42\xff"), 1<<15)
	_, grey, _ := i.post("image_transformer", "0", pixels)
	for _, name := range []string{"image_transformer", "native"} {
		i.expect(name+".tenant", "0", string(pixels), http.StatusOK, string(grey))
		f := query[api.Function](i, "describe", "-n", "tenant", name)
		r, err := callTagged(t, f, pixels, lambdanic.WithKey(key))
		if err != nil || !bytes.Equal(r.Body, grey) {
			t.Errorf("%s: the client got %d bytes (%v), want %d", name, len(r.Body), err, len(grey))
		}
		if _, err := callTagged(t, f, []byte("rgba")); !errors.Is(err, lambdanic.ErrBadTag) {
			t.Errorf("%s without a tag: %v", name, err)
		}
	}
	for _, s := range query[[]api.FunctionStats](i, "stats", "-n", "tenant") {
		if s.BadTags != 1 || s.Replayed != 0 {
			t.Errorf("%s counted %+v", s.Name, s.Stats)
		}
	}
}

// callTagged calls a function by a client with options.
func callTagged(t *testing.T, f api.Function, body []byte, opts ...lambdanic.Option) (lambdanic.Response, error) {
	t.Helper()
	client, err := lambdanic.Dial(f.Endpoint.String(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return client.Call(t.Context(), lambdanic.Request{Workload: f.Workload, Body: body})
}

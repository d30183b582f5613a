package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/openfaas/faas-provider/types"

	"github.com/lambdanic/lambdanic/api"
	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// asks calls a function, with options for its client.
func asks(t *testing.T, f *api.Function, opts ...lambdanic.Option) error {
	t.Helper()
	client, err := lambdanic.Dial(f.Endpoint.String(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = client.Call(ctx, lambdanic.Request{Workload: f.Workload})
	return err
}

// An operator makes a key, requires tags, changes to the next key, and ends the first. Clients with the right key, and the gateway, are served
// throughout.
func TestTenantWithTags(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	p := newInstance(t, "k")
	c := mustUp(t, Config{Paths: p, Listen: anyPort})
	client, ctx := NewClient(p), t.Context()
	web := deployWebServer(t, p)
	f, err := client.Deploy(ctx, types.FunctionDeployment{Service: "web", Namespace: "tenant", Image: web.Image})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.RequireTags(ctx, "tenant", true); err == nil || !strings.Contains(err.Error(), "lambdanic namespace key add tenant") {
		t.Errorf("tags without a key: %v", err)
	}
	var keys []api.Key
	add := func() {
		t.Helper()
		k, err := client.AddKey(ctx, "tenant")
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.Key)
	}
	served := func(when string, want map[int]bool) {
		t.Helper()
		fetch(t, "http://"+c.node.Listen+"/function/web.tenant")
		for i, good := range want {
			if err := asks(t, f, lambdanic.WithKey(keys[i])); good != (err == nil) || !good && !errors.Is(err, lambdanic.ErrBadTag) {
				t.Errorf("%s: by key %d: %v", when, keys[i].Number, err)
			}
		}
	}
	add()
	served("with a key", map[int]bool{0: true})
	if err := asks(t, f); err != nil {
		t.Errorf("without a tag, while none is required: %v", err)
	}
	n, err := client.RequireTags(ctx, "tenant", true)
	if err != nil || !n.Keys.Required || len(n.Keys.Keys) != 1 || n.Keys.Keys[0].Number != 1 {
		t.Fatalf("%+v (%v)", n, err)
	}
	if err := asks(t, f); !errors.Is(err, lambdanic.ErrBadTag) {
		t.Errorf("without a tag: %v", err)
	}
	if err := asks(t, f, lambdanic.WithHeaderKey(keys[0])); err != nil {
		t.Errorf("with a tag over the header: %v", err)
	}
	add()
	served("with two keys", map[int]bool{0: true, 1: true})
	if err := client.RemoveKey(ctx, "tenant", 1); err != nil {
		t.Fatal(err)
	}
	served("without the first", map[int]bool{0: false, 1: true})
	if err := client.RemoveKey(ctx, "tenant", 2); err == nil || !strings.Contains(err.Error(), "the only one") {
		t.Errorf("removed the last key: %v", err)
	}
	c.kill()
	c = mustUp(t, Config{Paths: p, Listen: anyPort})
	add()
	served("with the next daemon", map[int]bool{0: false, 1: true, 2: true})
	if _, err := client.AddKey(ctx, "tenant"); err == nil || !strings.Contains(err.Error(), "`lambdanic namespace key remove tenant 2`") {
		t.Errorf("a third key: %v", err)
	}
	served("after a third key was refused", map[int]bool{1: true, 2: true})
	if s := showNamespace(t, p, "tenant").Stats; s.BadTags == 0 {
		t.Errorf("counted %+v", s)
	}
	if r, err := http.Get("http://" + c.node.Listen + "/system/namespace/tenant"); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without credentials: %v, %v", r, err)
	}
}

// On a real interface, the gateway asks what the NIC answers at once, also where tags are required, and says why it cannot call the rest.
func TestTagsOnRealInterface(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it brings a NIC up")
	}
	config := onInterface(t, "i")
	config.Listen = anyPort
	p, c := config.Paths, mustUp(t, config)
	client, ctx := NewClient(p), t.Context()
	web := deployWebServer(t, p)
	mirror, err := Build(ctx, p, "../../test/lambdas/mirror")
	if err != nil {
		t.Fatal(err)
	}
	for name, image := range map[string]string{"web": web.Image, "mirror": mirror.Image} {
		if _, err := client.Deploy(ctx, types.FunctionDeployment{Service: name, Namespace: "tenant", Image: image}); err != nil {
			t.Fatal(err)
		}
	}
	for _, required := range []bool{false, true} {
		if required {
			if _, err := client.AddKey(ctx, "tenant"); err != nil {
				t.Fatal(err)
			}
			if _, err := client.RequireTags(ctx, "tenant", true); err != nil {
				t.Fatal(err)
			}
		}
		fetch(t, "http://"+c.node.Listen+"/function/web.tenant")
		r, err := http.Post("http://"+c.node.Listen+"/function/mirror.tenant", "", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusForbidden || !strings.Contains(string(body), "call it from another machine by λ-RPC") {
			t.Errorf("tags required: %t: a function of mode assemble: %s %s", required, r.Status, body)
		}
	}
}

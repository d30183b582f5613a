package manager

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

func mustAddKey(t *testing.T, n *node) api.Key {
	t.Helper()
	k, err := n.AddKey(t.Context(), "tenant")
	if err != nil {
		t.Fatal(err)
	}
	return k.Key
}

// numbersOf are the numbers of a namespace's keys.
func numbersOf(t *testing.T, n *node) (list []uint32) {
	t.Helper()
	if k := mustShow(t, n, "tenant").Keys; k != nil {
		for _, key := range k.Keys {
			list = append(list, key.Number)
		}
	}
	return list
}

// A namespace has up to two keys, and none ends by adding another.
func TestKeys(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	var logged bytes.Buffer
	n.Log = slog.New(slog.NewJSONHandler(&logged, nil))
	secrets := map[[api.SecretLen]byte]bool{}
	for _, step := range []struct {
		remove uint32 // 0: add one
		want   []uint32
	}{
		{0, []uint32{1}}, {0, []uint32{1, 2}}, {1, []uint32{2}}, {0, []uint32{2, 3}}, {3, []uint32{2}}, {0, []uint32{2, 5}}, {2, []uint32{5}}, {5, nil}, {0, []uint32{6}},
	} {
		if step.remove != 0 {
			if err := n.RemoveKey(t.Context(), "tenant", step.remove); err != nil {
				t.Fatal(err)
			}
		} else {
			secrets[mustAddKey(t, n).Secret] = true
		}
		if got := numbersOf(t, n); !slices.Equal(got, step.want) {
			t.Fatalf("%+v: keys %v", step, got)
		}
	}
	for secret := range secrets {
		if strings.Contains(logged.String(), base64.RawURLEncoding.EncodeToString(secret[:])) || bytes.Contains(logged.Bytes(), secret[:]) {
			t.Errorf("the log has a secret: %s", &logged)
		}
	}
	if !strings.Contains(logged.String(), `"key":"key 3 of namespace tenant"`) {
		t.Errorf("the log does not name a new key: %s", &logged)
	}
	if len(secrets) != 5 {
		t.Errorf("5 keys have %d secrets", len(secrets))
	}
	for name, want := range map[string]error{"tenant": ErrNoKey, "default": ErrNoKey, "nobody": ErrNoNamespace} {
		if err := n.RemoveKey(t.Context(), name, 5); !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("removed key 5 of %s: %v", name, err)
		}
	}
	mustAddKey(t, n)
	if _, err := n.AddKey(t.Context(), "tenant"); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), "`lambdanic namespace key remove tenant 6`") {
		t.Errorf("a third key: %v", err)
	}
	if got := numbersOf(t, n); !slices.Equal(got, []uint32{6, 7}) {
		t.Errorf("then there are the keys %v", got)
	}
	if _, err := n.RequireTags(t.Context(), "nobody", false); !errors.Is(err, ErrNoNamespace) {
		t.Errorf("tags of nobody: %v", err)
	}
	if _, err := n.AddKey(t.Context(), "No"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a key for a name that is none: %v", err)
	}
}

// Keys are kept in the store, and end with their namespace.
func TestKeysAreKept(t *testing.T) {
	dir := shortdir.New(t)
	st, err := store.Open(t.Context(), store.Config{DataDir: filepath.Join(dir, "d"), SocketDir: filepath.Join(dir, "s")})
	if err != nil {
		t.Fatal(err)
	}
	n := openOn(t, dir, st, nil)
	k := mustAddKey(t, n)
	if _, err := n.RequireTags(t.Context(), "tenant", true); err != nil {
		t.Fatal(err)
	}
	if got := n.RequiredKey("tenant"); got == nil || *got != k {
		t.Errorf("calls are tagged by %v, want %v", got, k)
	}
	if n.RequiredKey("default") != nil {
		t.Error("calls to a namespace without keys are tagged")
	}
	n.stop()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, dir, nil)
	if got := n.RequiredKey("tenant"); got == nil || *got != k {
		t.Errorf("afterwards, calls are tagged by %v, want %v", got, k)
	}
	if err := n.RemoveNamespace(t.Context(), "tenant"); err != nil {
		t.Fatal(err)
	}
	if n.RequiredKey("tenant") != nil {
		t.Error("the key outlived its namespace")
	}
	if next := mustAddKey(t, n); next.Number != 1 || next.Secret == k.Secret {
		t.Errorf("the next namespace of that name has %v", next)
	}
}

// stage is a match stage of the namespace tenant.
func stage(name string) Request {
	r := tenant(name)
	r.Image = image("e")
	return r
}

// Where a change of keys is stored, but not in force, a key is to be removed only if nobody was shown it.
func TestKeysThatAreNotInForce(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	if _, err := n.AddKey(t.Context(), "tenant"); err != nil {
		t.Fatal(err)
	}
	n.nic.event = func(_ context.Context, what string) error {
		if what == "limit" {
			return errors.New("the map is full")
		}
		return nil
	}
	_, added := n.AddKey(t.Context(), "tenant")
	_, required := n.RequireTags(t.Context(), "tenant", true)
	for what, c := range map[string]struct {
		err    error
		remove bool
	}{"add a key to": {added, true}, "set the tags of": {required, false}, "remove a key of": {n.RemoveKey(t.Context(), "tenant", 2), false}} {
		if !errors.Is(c.err, errNotInForce) || !strings.HasPrefix(c.err.Error(), what+" namespace tenant: ") || strings.Contains(c.err.Error(), "nobody was shown") != c.remove {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}

// A match stage, whose packets have no tags, and tags that are required do not go together.
func TestWhatHasNoTags(t *testing.T) {
	n := openNode(t, shortdir.New(t), nil)
	mustDeploy(t, n, stage("first"))
	mustAddKey(t, n)
	if _, err := n.RequireTags(t.Context(), "tenant", true); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "tenant/first is a match stage") {
		t.Errorf("tags for a match stage: %v", err)
	}
	if err := n.Remove(t.Context(), "tenant", "first"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.RequireTags(t.Context(), "tenant", true); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Deploy(t.Context(), stage("second")); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "second is a match stage") {
		t.Errorf("deployed a match stage: %v", err)
	}
	mustDeploy(t, n, tenant("third"))
}

package artifact

import (
	"bytes"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"
)

// Whatever happens to the index, every artifact is found again, in a store that is opened then or is open already.
func TestIndexIsRebuilt(t *testing.T) {
	for name, damage := range map[string]func(path string, index []byte) error{
		"missing":   func(path string, _ []byte) error { return os.Remove(path) },
		"empty":     func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"half":      func(path string, index []byte) error { return os.Truncate(path, int64(len(index)/2)) },
		"no index":  func(path string, _ []byte) error { return os.WriteFile(path, []byte("{}"), 0o600) },
		"garbage":   func(path string, _ []byte) error { return os.WriteFile(path, []byte("\x00garbage"), 0o600) },
		"overgrown": func(path string, index []byte) error { return os.WriteFile(path, append(index, index...), 0o600) },
	} {
		for _, opened := range []string{"then opened", "while open"} {
			t.Run(name+" "+opened, func(t *testing.T) {
				s := open(t)
				key := digest.FromString("key")
				a, b := sample("a"), put(t, s, sample("b"))
				if err := s.PutCached(key, a); err != nil {
					t.Fatal(err)
				}
				// Not artifacts: other data, and a manifest that does not match its digest.
				other, broken := digest.FromString("{}").Encoded(), digest.FromString("broken").Encoded()
				manifest, err := os.ReadFile(s.path(blobsDir, digest.Digest(a.Digest).Encoded()))
				if err != nil {
					t.Fatal(err)
				}
				for name, data := range map[string][]byte{other: []byte("{}"), broken: manifest} {
					if err := os.WriteFile(s.path(blobsDir, name), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				index, err := os.ReadFile(s.path(ispec.ImageIndexFile))
				if err != nil {
					t.Fatal(err)
				}
				if err := damage(s.path(ispec.ImageIndexFile), index); err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, nil))
				s.log = logger
				if opened == "then opened" {
					if s, err = Open(s.root, logger); err != nil {
						t.Fatal(err)
					}
				}
				for _, want := range []*Artifact{a, b} {
					if got, err := s.Get(want.Digest); err != nil || !reflect.DeepEqual(got, want) {
						t.Errorf("got %+v, %v", got, err)
					}
				}
				want := []string{a.Digest, b.Digest}
				slices.Sort(want)
				if list, err := s.List(); err != nil || !slices.Equal(list, want) {
					t.Errorf("list: %v, %v", list, err)
				}
				if got, err := s.Cached(key); err != nil || got.Digest != a.Digest {
					t.Errorf("cached: %v, %v", got, err)
				}
				if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, s.root) || !strings.Contains(said, "artifacts=2") {
					t.Errorf("it says %q", said)
				}
				layout, err := oci.New(s.root)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := layout.Resolve(t.Context(), a.Digest); err != nil {
					t.Errorf("to another implementation: %v", err)
				}
			})
		}
	}
}

// Putting and deleting rebuild a damaged index, as reading does.
func TestChangesRebuildTheIndex(t *testing.T) {
	for name, change := range map[string]func(s *Store, a, b *Artifact) error{
		"put":    func(s *Store, _, b *Artifact) error { return s.Put(b) },
		"delete": func(s *Store, a, _ *Artifact) error { return s.Delete(a.Digest) },
	} {
		s := open(t)
		a, b := put(t, s, sample("a")), sample("b")
		if name == "delete" {
			put(t, s, b)
		}
		if err := os.Truncate(s.path(ispec.ImageIndexFile), 0); err != nil {
			t.Fatal(err)
		}
		if err := change(s, a, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_, errA := s.Get(a.Digest)
		if _, err := s.Get(b.Digest); err != nil || (errA == nil) != (name == "put") {
			t.Errorf("after %s: a %v, b %v", name, errA, err)
		}
	}
}

func TestANewStoreSaysNothing(t *testing.T) {
	var log bytes.Buffer
	if _, err := Open(t.TempDir(), slog.New(slog.NewTextHandler(&log, nil))); err != nil || log.Len() > 0 {
		t.Errorf("%v, %q", err, log.String())
	}
}

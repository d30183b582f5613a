package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/oci"

	"github.com/lambdanic/lambdanic/api"
)

func sample(name string) *Artifact {
	return &Artifact{
		Manifest: api.Manifest{Spec: api.Spec{Name: name}.Default(), Compiler: "clang"},
		Source:   []byte("source of " + name), BPF: []byte("the same BPF"), Native: []byte("native " + name),
	}
}

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *Store, a *Artifact) *Artifact {
	t.Helper()
	if err := s.Put(a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestStoreGivesBackWhatWasPut(t *testing.T) {
	s := open(t)
	a, b := put(t, s, sample("a")), put(t, s, sample("b"))
	again, err := Open(s.root, nil) // as after a restart
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []*Artifact{a, b} {
		if got, err := again.Get(want.Digest); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
		if got, err := again.Manifest(want.Digest); err != nil || !reflect.DeepEqual(got, &want.Manifest) {
			t.Errorf("the manifest is %+v, %v", got, err)
		}
	}
	list, err := again.List()
	want := []string{a.Digest, b.Digest}
	slices.Sort(want)
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("list: got %v, %v", list, err)
	}
}

func TestPutTwiceKeepsOne(t *testing.T) {
	s := open(t)
	a, b := put(t, s, sample("a")), put(t, s, sample("a"))
	if list, err := s.List(); err != nil || len(list) != 1 || a.Digest != b.Digest {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestDeleteKeepsWhatIsShared(t *testing.T) {
	s := open(t)
	a, b := put(t, s, sample("a")), put(t, s, sample("b"))
	if err := s.Delete(a.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(a.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted: got %v", err)
	}
	if err := s.Delete(a.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted twice: got %v", err)
	}
	if _, err := s.Get(b.Digest); err != nil {
		t.Errorf("the other: %v", err)
	}
	if err := s.Delete(b.Digest); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(s.path(blobsDir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestGetOfNonsense(t *testing.T) {
	s := open(t)
	for _, name := range []string{"", "latest", "sha256:../../index.json", "sha256:" + string(bytes.Repeat([]byte("0"), 64))} {
		if _, err := s.Get(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: got %v", name, err)
		}
		if _, err := s.Manifest(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("the manifest of %q: got %v", name, err)
		}
	}
}

func TestGetRefusesBrokenFiles(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"flipped bit": func(path string) error {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			return os.WriteFile(path, data, 0o600)
		},
		"truncated": func(path string) error { return os.Truncate(path, 3) },
		"extended":  func(path string) error { return os.Truncate(path, 5000) },
		"missing":   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			a := put(t, s, sample("a"))
			blobs, err := filepath.Glob(s.path(blobsDir, "*"))
			if err != nil || len(blobs) != 5 {
				t.Fatalf("%v, %v", blobs, err)
			}
			for _, blob := range blobs {
				data, err := os.ReadFile(blob)
				if err != nil {
					t.Fatal(err)
				}
				manifest := json.Valid(data) // it, or the config that it names
				if err := damage(blob); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Manifest(a.Digest); manifest != errors.Is(err, ErrBroken) {
					t.Errorf("%s: the manifest is read as %v", blob, err)
				}
				if _, err := s.Get(a.Digest); !errors.Is(err, ErrBroken) {
					t.Errorf("%s: got %v", blob, err)
				}
				put(t, s, sample("a")) // which repairs it
				if _, err := s.Get(a.Digest); err != nil {
					t.Errorf("after putting it again: %v", err)
				}
			}
		})
	}
}

func TestOpenSurvivesACrash(t *testing.T) {
	s := open(t)
	a := put(t, s, sample("a"))
	// A crash in the middle of a Put leaves a temporary file, and blobs that no index names.
	for _, name := range []string{tempDir + "/123", blobsDir + "/stray"} {
		if err := os.WriteFile(s.path(name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(s.root, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Get(a.Digest); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(s.path(tempDir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestStoreIsConcurrent(t *testing.T) {
	s := open(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			other, err := Open(s.root, nil)
			if err != nil {
				t.Error(err)
				return
			}
			a := sample(fmt.Sprintf("a%d", i))
			if err := other.Put(a); err != nil {
				t.Error(err)
			}
			if _, err := s.Get(a.Digest); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if err := other.Delete(a.Digest); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	list, err := s.List()
	if err != nil || len(list) != 4 {
		t.Errorf("got %v, %v", list, err)
	}
	for _, name := range list {
		if _, err := s.Get(name); err != nil {
			t.Error(err)
		}
	}
}

func TestCacheFollowsTheStore(t *testing.T) {
	s := open(t)
	key := digest.FromString("key")
	if _, err := s.Cached(key); !errors.Is(err, ErrNotFound) {
		t.Errorf("empty: got %v", err)
	}
	a := sample("a")
	if err := s.PutCached(key, a); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Cached(key); err != nil || got.Digest != a.Digest {
		t.Errorf("got %v, %v", got, err)
	}
	if err := s.Delete(a.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cached(key); !errors.Is(err, ErrNotFound) {
		t.Errorf("deleted: got %v", err)
	}
	if left, _ := filepath.Glob(s.path(cacheDir, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Another implementation of the OCI image layout reads the store.
func TestStoreIsAnOCILayout(t *testing.T) {
	s := open(t)
	a := put(t, s, sample("a"))
	layout, err := oci.New(s.root)
	if err != nil {
		t.Fatal(err)
	}
	d, err := layout.Resolve(t.Context(), a.Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := layout.Fetch(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer manifest.Close()
	var m ispec.Manifest
	if err := json.NewDecoder(manifest).Decode(&m); err != nil {
		t.Fatal(err)
	}
	for _, part := range append(m.Layers, m.Config) {
		if ok, err := layout.Exists(t.Context(), part); !ok || err != nil {
			t.Errorf("%s: %v, %v", part.MediaType, ok, err)
		}
	}
}

// Reading any manifest ends with an artifact that encodes to the same manifest, or with ErrBroken.
func FuzzDecode(f *testing.F) {
	blobs, err := sample("a").encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(blobs[len(blobs)-1], blobs[len(blobs)-2])
	f.Fuzz(func(t *testing.T, manifest, config []byte) {
		kept := make(map[digest.Digest][]byte)
		for _, blob := range append(slices.Clone(blobs), config) {
			kept[digest.FromBytes(blob)] = blob
		}
		// A fuzzer cannot guess digests, so the config is found by any digest.
		a, err := decode(manifest, func(d ispec.Descriptor) ([]byte, error) {
			if d.MediaType == TypeConfig {
				return config, nil
			}
			if data, ok := kept[d.Digest]; ok {
				return data, nil
			}
			return nil, ErrBroken
		})
		if err != nil {
			if !errors.Is(err, ErrBroken) {
				t.Errorf("got %v", err)
			}
			return
		}
		written := a.Manifest
		if err := a.Seal(); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a.Manifest.BPF, written.BPF) || a.Manifest.Source != written.Source {
			t.Errorf("layers changed: %+v, was %+v", a.Manifest, written)
		}
	})
}

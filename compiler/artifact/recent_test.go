package artifact

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What was read once is not read again, but is gone when the store no longer has it.
func TestRecentReadsOnce(t *testing.T) {
	s := open(t)
	r := NewRecent(s)
	a := put(t, s, sample("a"))
	got, err := r.Get(a.Digest)
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(s.path(blobsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		if err := os.Truncate(blob, 3); err != nil {
			t.Fatal(err)
		}
	}
	again, err := r.Get(a.Digest)
	if err != nil || again != got {
		t.Errorf("it was read again: %v", err)
	}
	if m, err := r.Manifest(a.Digest); err != nil || m != &got.Manifest {
		t.Errorf("the manifest was read again: %v", err)
	}
	if err := s.Delete(a.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(a.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	if _, err := r.Manifest(a.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("its manifest after it was deleted: %v", err)
	}
}

// A Recent checks what it reads, and keeps no more than it may.
func TestRecentReadsWhatItDoesNotHave(t *testing.T) {
	s := open(t)
	r := NewRecent(s)
	a := put(t, s, sample("a"))
	blob := s.path(blobsDir, a.Digest[len("sha256:"):])
	if m, err := r.Manifest(a.Digest); err != nil || m.Spec.Name != "a" {
		t.Errorf("the manifest is %+v, %v", m, err)
	}
	if err := os.Truncate(blob, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(a.Digest); !errors.Is(err, ErrBroken) {
		t.Errorf("it read a broken artifact: %v", err)
	}
	put(t, s, sample("a")) // which repairs it
	for i := range kept + 1 {
		b := put(t, s, sample(string(rune('b'+i))))
		if _, err := r.Get(b.Digest); err != nil {
			t.Fatal(err)
		}
	}
	if n := r.kept.Len(); n != kept {
		t.Errorf("it keeps %d artifacts", n)
	}
}

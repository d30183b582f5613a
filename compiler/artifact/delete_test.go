package artifact

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/lambdanic/lambdanic/internal/space"
	"github.com/lambdanic/lambdanic/test/smalldisk"
)

// age makes an artifact as old as one built at that time.
func age(t *testing.T, s *Store, name string, built time.Time) {
	t.Helper()
	if err := os.Chtimes(s.path(blobsDir, digest.Digest(name).Encoded()), built, built); err != nil {
		t.Fatal(err)
	}
}

func collect(t *testing.T, s *Store, before time.Time, used ...string) []string {
	t.Helper()
	deleted, err := s.Collect(func(name string) bool { return slices.Contains(used, name) }, before)
	if err != nil {
		t.Fatal(err)
	}
	return deleted
}

func TestCollect(t *testing.T) {
	s := open(t)
	now := time.Now()
	before := now.Add(-time.Hour)
	used, young, old := put(t, s, sample("used")), put(t, s, sample("young")), put(t, s, sample("old"))
	age(t, s, used.Digest, now.Add(-48*time.Hour))
	age(t, s, young.Digest, now.Add(-59*time.Minute))
	age(t, s, old.Digest, now.Add(-61*time.Minute))
	stray := s.path(blobsDir, digest.FromString("half a build").Encoded())
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s, before, used.Digest); !slices.Equal(got, []string{old.Digest}) {
		t.Errorf("deleted %v, want %s", got, old.Digest)
	}
	for _, kept := range []*Artifact{used, young} { // all with the same BPF
		if _, err := s.Get(kept.Digest); err != nil {
			t.Errorf("%s: %v", kept.Manifest.Spec.Name, err)
		}
	}
	if _, err := s.Get(old.Digest); !errors.Is(err, ErrNotFound) {
		t.Errorf("old: %v", err)
	}
	if _, err := os.Stat(stray); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a build left: %v", err)
	}
	if got := collect(t, s, before); len(got) > 0 {
		t.Errorf("deleted %v, which was in use just now", got)
	}
}

// An artifact that a build finds in the store becomes as young as a new one.
func TestBuildingMakesYoung(t *testing.T) {
	key := digest.FromString("key")
	for name, build := range map[string]func(s *Store, a *Artifact) error{
		"again":          func(s *Store, a *Artifact) error { return s.Put(a) },
		"renewed":        func(s *Store, _ *Artifact) error { return s.Renew() },
		"from the cache": func(s *Store, _ *Artifact) error { _, err := s.Cached(key); return err },
	} {
		s := open(t)
		a := sample("a")
		if err := s.PutCached(key, a); err != nil {
			t.Fatal(err)
		}
		long := time.Now().Add(-48 * time.Hour)
		age(t, s, a.Digest, long)
		if err := build(s, a); err != nil {
			t.Fatal(err)
		}
		if got := collect(t, s, long.Add(time.Hour)); len(got) > 0 {
			t.Errorf("%s: deleted %v", name, got)
		}
	}
}

// An artifact that cannot be read is collected like any other, without blobs that belong to others.
func TestCollectMeetsBrokenFiles(t *testing.T) {
	s := open(t)
	a, b, c := put(t, s, sample("a")), put(t, s, sample("b")), put(t, s, sample("c"))
	if err := os.WriteFile(s.path(blobsDir, digest.Digest(a.Digest).Encoded()), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.path(blobsDir, digest.Digest(b.Digest).Encoded())); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s, time.Now().Add(time.Hour), a.Digest, b.Digest, c.Digest); len(got) > 0 {
		t.Errorf("deleted %v, which are in use", got)
	}
	if got := collect(t, s, time.Now().Add(time.Hour), a.Digest, c.Digest); !slices.Equal(got, []string{b.Digest}) {
		t.Errorf("deleted %v, want %s, whose manifest is gone", got, b.Digest)
	}
	if _, err := s.Get(c.Digest); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.path(blobsDir, digest.FromBytes(a.Native).Encoded())); err != nil {
		t.Errorf("what the broken one may need when its manifest is put back: %v", err)
	}
	if got := collect(t, s, time.Now().Add(time.Hour), c.Digest); !slices.Equal(got, []string{a.Digest}) {
		t.Errorf("deleted %v, want %s", got, a.Digest)
	}
	if left, _ := filepath.Glob(s.path(blobsDir, "*")); len(left) != 5 {
		t.Errorf("left are %v, want the 5 of c", left)
	}
}

// On a disk without a free byte, artifacts can be deleted.
func TestDeleteOnAFullDisk(t *testing.T) {
	disk := smalldisk.New(t, "1m")
	s, err := Open(filepath.Join(disk, "artifacts"), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := put(t, s, sample("a")), put(t, s, sample("b")), put(t, s, sample("c"))
	long := time.Now().Add(-48 * time.Hour)
	for _, old := range []*Artifact{b, c} {
		age(t, s, old.Digest, long)
	}
	smalldisk.Fill(t, disk)
	if err := s.Put(sample("d")); !space.Is(err) {
		t.Fatalf("put says %v", err)
	}
	if err := s.Delete(a.Digest); err != nil {
		t.Fatal(err)
	}
	if got := collect(t, s, long.Add(time.Hour), b.Digest); !slices.Equal(got, []string{c.Digest}) {
		t.Errorf("deleted %v, want %s", got, c.Digest)
	}
	if got := collect(t, s, long.Add(time.Hour)); len(got) > 0 {
		t.Errorf("deleted %v, which was in use just now", got)
	}
	if list, err := s.List(); err != nil || !slices.Equal(list, []string{b.Digest}) {
		t.Errorf("left is %v (%v)", list, err)
	}
	if _, err := s.Get(b.Digest); err != nil {
		t.Error(err)
	}
}

package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
)

// PutCached keeps a, and remembers it as the result of the build with that key.
func (s *Store) PutCached(key digest.Digest, a *Artifact) error {
	if err := s.Put(a); err != nil {
		return err
	}
	if err := s.locked(func() error { return s.write(cached(key), []byte(a.Digest)) }); err != nil {
		return fmt.Errorf("remember artifact %s: %w", a.Digest, err)
	}
	return nil
}

// Cached returns what PutCached kept under key. The error is ErrNotFound or ErrBroken, wrapped.
func (s *Store) Cached(key digest.Digest) (*Artifact, error) {
	name, err := s.read(cached(key), 256)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: nothing was built of %s", ErrNotFound, key)
	}
	if err != nil {
		return nil, err
	}
	err = s.locked(func() error { return s.touch(string(name)) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("find artifact %s: %w", name, err)
	}
	return s.Get(string(name))
}

// Build returns what store kept under key. Otherwise, and always without a store, it calls build, seals the artifact and keeps it.
func Build(store *Store, key digest.Digest, build func() (*Artifact, error)) (*Artifact, error) {
	if store != nil {
		if a, err := store.Cached(key); err == nil {
			return a, nil
		} else if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrBroken) {
			return nil, err
		}
	}
	a, err := build()
	if err != nil {
		return nil, err
	}
	if err := a.Seal(); err != nil {
		return nil, err
	}
	if store != nil {
		if err := store.PutCached(key, a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func cached(key digest.Digest) string { return cacheDir + "/" + key.Encoded() }

// forget drops the keys of a deleted artifact.
func (s *Store) forget(name string) error {
	entries, err := os.ReadDir(s.path(cacheDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if kept, err := s.read(cacheDir+"/"+e.Name(), 256); err != nil || string(kept) != name {
			continue
		}
		if err := os.Remove(s.path(cacheDir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/lambdanic/lambdanic/internal/space"
)

// Delete removes the artifact of that digest, and the blobs that no other artifact shares.
func (s *Store) Delete(name string) error {
	if err := s.locked(func() error { return s.delete(name) }); err != nil {
		return fmt.Errorf("delete artifact %s: %w", name, err)
	}
	return nil
}

func (s *Store) delete(name string) error {
	index, err := s.lockedIndex()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(index, is(name))
	if i < 0 {
		return ErrNotFound
	}
	blobs, err := s.blobsOf(index[i])
	if err != nil {
		return err
	}
	index = slices.Delete(index, i, i+1)
	shared, err := s.shared(index)
	if err != nil {
		return err
	}
	// The index goes first: after a crash there may be too many blobs, never too few. On a full disk, the blobs' space is freed for it.
	full := s.writeIndex(index)
	if full != nil && !space.Is(full) {
		return full
	}
	for _, d := range blobs {
		if shared[d] || d.Validate() != nil {
			continue
		}
		if err := os.Remove(s.path(blobsDir, d.Encoded())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if full != nil {
		if err := s.writeIndex(index); err != nil {
			return err
		}
	}
	return s.forget(name)
}

// shared returns the blobs of all artifacts of an index.
func (s *Store) shared(index []ispec.Descriptor) (map[digest.Digest]bool, error) {
	shared := make(map[digest.Digest]bool)
	for _, d := range index {
		blobs, err := s.blobsOf(d)
		if err != nil {
			return nil, err
		}
		for _, blob := range blobs {
			shared[blob] = true
		}
	}
	return shared, nil
}

// blobsOf lists the blobs of an artifact. Of a broken one, it lists what the manifest still tells.
func (s *Store) blobsOf(d ispec.Descriptor) ([]digest.Digest, error) {
	blobs := []digest.Digest{d.Digest}
	encoded, err := s.fetch(d)
	if errors.Is(err, ErrBroken) {
		return blobs, nil
	} else if err != nil {
		return nil, err
	}
	var manifest ispec.Manifest
	if unmarshal(encoded, &manifest) != nil {
		return blobs, nil
	}
	for _, l := range append(manifest.Layers, manifest.Config) {
		blobs = append(blobs, l.Digest)
	}
	return blobs, nil
}

// touch makes an artifact as young as one that was just built. It needs no disk space.
func (s *Store) touch(name string) error {
	d := digest.Digest(name)
	if d.Validate() != nil {
		return fs.ErrNotExist
	}
	return os.Chtimes(s.path(blobsDir, d.Encoded()), time.Time{}, time.Now())
}

// Renew makes all artifacts as young as those that were just built.
func (s *Store) Renew() error {
	names, err := s.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		err := s.locked(func() error { return s.touch(name) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("renew artifact %s: %w", name, err)
		}
	}
	return nil
}

// Collect deletes the artifacts that are not in use, and that were last built, or in use during a Collect, before a time. It returns their
// digests. A build that finds its artifact in the store counts as a build. Leftovers of failed builds are deleted, too.
func (s *Store) Collect(used func(name string) bool, before time.Time) (deleted []string, err error) {
	names, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		gone := false
		err := s.locked(func() error {
			if used(name) {
				return s.touch(name)
			}
			built, err := s.built(name)
			if err != nil || !built.Before(before) {
				return err
			}
			gone = true
			return s.delete(name)
		})
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, fs.ErrNotExist): // another process was faster, or it is broken
		case err != nil:
			return deleted, fmt.Errorf("delete artifact %s: %w", name, err)
		case gone:
			deleted = append(deleted, name)
		}
	}
	if err := s.locked(s.sweep); err != nil {
		return deleted, fmt.Errorf("delete what belongs to no artifact: %w", err)
	}
	return deleted, nil
}

// sweep removes blobs that belong to no artifact. A writer holds the lock until the index has its artifact.
func (s *Store) sweep() error {
	index, err := s.lockedIndex()
	if err != nil {
		return err
	}
	for _, d := range index {
		if _, err := s.fetch(d); errors.Is(err, ErrBroken) {
			return nil // its blobs cannot be told from stray ones
		}
	}
	shared, err := s.shared(index)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(s.path(blobsDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if shared[digest.NewDigestFromEncoded(digest.SHA256, e.Name())] {
			continue
		}
		if err := os.Remove(s.path(blobsDir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// built is when an artifact was last built: the zero time if its manifest is gone.
func (s *Store) built(name string) (time.Time, error) {
	d := digest.Digest(name)
	if d.Validate() != nil {
		return time.Time{}, nil
	}
	info, err := os.Stat(s.path(blobsDir, d.Encoded()))
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	} else if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

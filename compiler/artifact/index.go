package artifact

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// The index lists the artifacts of the store. The manifests hold all that it says, so a damaged or lost index is rebuilt from them.

// index returns the manifests of the store.
func (s *Store) index() ([]ispec.Descriptor, error) {
	index, err := s.readIndex()
	if !lost(err) {
		return index, err
	}
	err = s.locked(func() (err error) {
		index, err = s.lockedIndex()
		return err
	})
	return index, err
}

// lockedIndex is index for callers that hold the lock.
func (s *Store) lockedIndex() ([]ispec.Descriptor, error) {
	index, err := s.readIndex()
	if !lost(err) {
		return index, err
	}
	return s.rebuildIndex(err)
}

func lost(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrBroken) }

func (s *Store) readIndex() ([]ispec.Descriptor, error) {
	data, err := s.read(ispec.ImageIndexFile, maxBlob)
	if err != nil {
		return nil, err
	}
	var index ispec.Index
	if err := unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBroken, ispec.ImageIndexFile, err)
	}
	if index.SchemaVersion != schemaVersion {
		return nil, fmt.Errorf("%w: %s has no schema version", ErrBroken, ispec.ImageIndexFile)
	}
	return index.Manifests, nil
}

// schemaVersion is the image specification's, for indices and manifests.
const schemaVersion = 2

func (s *Store) writeIndex(manifests []ispec.Descriptor) error {
	if manifests == nil {
		manifests = []ispec.Descriptor{} // the specification wants a list, even an empty one
	}
	data, err := json.Marshal(ispec.Index{
		Versioned: specs.Versioned{SchemaVersion: schemaVersion}, MediaType: ispec.MediaTypeImageIndex, Manifests: manifests,
	})
	if err != nil {
		return err
	}
	return s.write(ispec.ImageIndexFile, data)
}

// rebuildIndex makes an index of all manifests. Without any, the store is new, or as good as new.
func (s *Store) rebuildIndex(why error) ([]ispec.Descriptor, error) {
	entries, err := os.ReadDir(s.path(blobsDir))
	if err != nil {
		return nil, err
	}
	var index []ispec.Descriptor
	for _, e := range entries {
		d, ok, err := s.recognize(e)
		if err != nil {
			return nil, err
		}
		if ok {
			index = append(index, d)
		}
	}
	layout, err := json.Marshal(ispec.ImageLayout{Version: ispec.ImageLayoutVersion})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.write(ispec.ImageLayoutFile, layout), s.writeIndex(index)); err != nil {
		return nil, err
	}
	if len(entries) > 0 || !errors.Is(why, fs.ErrNotExist) {
		s.log.Warn("made the index of the artifacts again", "directory", s.root, "artifacts", len(index), "because", why)
	}
	return index, nil
}

// recognize describes a blob if it is the manifest of an artifact.
func (s *Store) recognize(e fs.DirEntry) (d ispec.Descriptor, ok bool, err error) {
	const maxManifest = 1 << 20 // ours have a few KiB
	if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() > maxManifest {
		return d, false, nil // gone, or something else
	}
	data, err := s.read(filepath.Join(blobsDir, e.Name()), maxManifest)
	if err != nil {
		return d, false, err
	}
	var m ispec.Manifest
	if digest.FromBytes(data).Encoded() != e.Name() || unmarshal(data, &m) != nil ||
		m.ArtifactType != Type || m.Config.MediaType != TypeConfig {
		return d, false, nil
	}
	return describeManifest(data, m.Annotations[ispec.AnnotationTitle]), true, nil
}

// describeManifest is an artifact's entry in the index.
func describeManifest(encoded []byte, title string) ispec.Descriptor {
	d := describe(ispec.MediaTypeImageManifest, encoded)
	d.ArtifactType = Type
	d.Annotations = map[string]string{ispec.AnnotationTitle: title}
	return d
}

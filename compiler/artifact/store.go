package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/opencontainers/go-digest"
	ispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// Store keeps artifacts in a directory, an OCI image layout. Any number of goroutines and processes may use one directory:
// writers exclude each other by a file lock, and readers see a file whole or not at all, because a file is written beside
// its place, synced and renamed. A crash leaves the store as it was before or after the call. (oras-go's OCI layout
// writes its index in place and syncs nothing.)
type Store struct {
	root string
	log  *slog.Logger
}

const (
	blobsDir = "blobs/sha256"
	cacheDir = "cache" // build key → digest
	tempDir  = "tmp"
	lockFile = "lock"
)

// Open opens the store in the directory root, and makes it if there is none. Log, which may be nil, gets a line for each repair.
func Open(root string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Store{root: root, log: log}
	for _, dir := range []string{blobsDir, cacheDir, tempDir} {
		if err := os.MkdirAll(s.path(dir), 0o700); err != nil {
			return nil, fmt.Errorf("open artifact store: %w", err)
		}
	}
	err := s.locked(func() error {
		if err := s.dropTemporaries(); err != nil {
			return err
		}
		_, err := s.lockedIndex()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open artifact store %s: %w", root, err)
	}
	return s, nil
}

// Put keeps a, and fills in its digests.
func (s *Store) Put(a *Artifact) error {
	blobs, err := a.encode()
	if err != nil {
		return err
	}
	if err := s.locked(func() error { return s.put(a, blobs) }); err != nil {
		return fmt.Errorf("put artifact %s: %w", a.Digest, err)
	}
	return nil
}

func (s *Store) put(a *Artifact, blobs [][]byte) error {
	for _, blob := range blobs {
		name := filepath.Join(blobsDir, digest.FromBytes(blob).Encoded())
		if kept, err := s.read(name, int64(len(blob))); err == nil && string(kept) == string(blob) {
			continue
		}
		if err := s.write(name, blob); err != nil {
			return err
		}
	}
	if err := s.touch(a.Digest); err != nil {
		return err
	}
	index, err := s.lockedIndex()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(index, is(a.Digest)) {
		return nil
	}
	return s.writeIndex(append(index, describeManifest(blobs[len(blobs)-1], a.Manifest.Spec.Name)))
}

// Get returns the artifact of that digest, after checking every byte of it. The error is ErrNotFound or ErrBroken, wrapped.
func (s *Store) Get(name string) (*Artifact, error) {
	a, err := s.get(name)
	if err != nil {
		return nil, fmt.Errorf("get artifact %s: %w", name, err)
	}
	return a, nil
}

func (s *Store) get(name string) (*Artifact, error) {
	d, err := s.find(name)
	if err != nil {
		return nil, err
	}
	encoded, err := s.fetch(d)
	if err != nil {
		return nil, err
	}
	return decode(encoded, s.fetch)
}

// Manifest is Get for the manifest alone: no other byte of the artifact is read.
func (s *Store) Manifest(name string) (*api.Manifest, error) {
	d, err := s.find(name)
	if err != nil {
		return nil, fmt.Errorf("get artifact %s: %w", name, err)
	}
	encoded, err := s.fetch(d)
	if err != nil {
		return nil, fmt.Errorf("get artifact %s: %w", name, err)
	}
	a, _, err := decodeManifest(encoded, s.fetch)
	if err != nil {
		return nil, fmt.Errorf("get artifact %s: %w", name, err)
	}
	return &a.Manifest, nil
}

func (s *Store) find(name string) (ispec.Descriptor, error) {
	index, err := s.index()
	if err != nil {
		return ispec.Descriptor{}, err
	}
	i := slices.IndexFunc(index, is(name))
	if i < 0 {
		return ispec.Descriptor{}, ErrNotFound
	}
	return index[i], nil
}

// has tells whether the index has an artifact.
func (s *Store) has(name string) bool {
	_, err := s.find(name)
	return err == nil
}

// fetch reads a blob and checks it against its descriptor.
func (s *Store) fetch(d ispec.Descriptor) ([]byte, error) {
	// Validate comes first: a digest from a broken file must not become a path.
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return nil, fmt.Errorf("%w: %q is not a digest", ErrBroken, d.Digest)
	}
	if d.Size < 0 || d.Size > maxBlob {
		return nil, fmt.Errorf("%w: %s has an impossible size of %d bytes", ErrBroken, d.Digest, d.Size)
	}
	data, err := s.read(filepath.Join(blobsDir, d.Digest.Encoded()), d.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s is missing", ErrBroken, d.Digest)
	}
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != d.Size || digest.FromBytes(data) != d.Digest {
		return nil, fmt.Errorf("%w: the content of %s was changed", ErrBroken, d.Digest)
	}
	return data, nil
}

// List returns the digests of all artifacts, sorted.
func (s *Store) List() ([]string, error) {
	index, err := s.index()
	if err != nil {
		return nil, fmt.Errorf("list artifacts: %w", err)
	}
	names := make([]string, len(index))
	for i, d := range index {
		names[i] = d.Digest.String()
	}
	slices.Sort(names)
	return names, nil
}

func is(name string) func(ispec.Descriptor) bool {
	return func(d ispec.Descriptor) bool { return d.Digest.String() == name }
}

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

// locked runs fn while no other writer runs. A lock belongs to an open file, so it also excludes goroutines of one process.
func (s *Store) locked(fn func() error) error {
	f, err := os.OpenFile(s.path(lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() // which unlocks
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return fn()
}

func (s *Store) read(name string, limit int64) ([]byte, error) {
	f, err := os.Open(s.path(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// write puts data under name, in one step that survives a crash.
func (s *Store) write(name string, data []byte) error {
	f, err := os.CreateTemp(s.path(tempDir), "*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, which is fine
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), s.path(name)); err != nil {
		return err
	}
	return syncDir(filepath.Dir(s.path(name)))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// dropTemporaries removes what a crash left behind. All writers hold the lock, so nothing there is in use.
func (s *Store) dropTemporaries() error {
	entries, err := os.ReadDir(s.path(tempDir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Remove(s.path(tempDir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

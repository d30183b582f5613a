// Package artifact keeps compiled lambdas: content-addressed, as OCI image layouts (opencontainers/image-spec).
package artifact

import (
	"errors"

	"github.com/lambdanic/lambdanic/api"
)

// Artifact is one compiled lambda with all its targets.
type Artifact struct {
	Digest   string // of the OCI image manifest; set by New and by Store.Get
	Manifest api.Manifest
	Source   []byte // tar of the lambda's directory
	BPF      []byte // ELF object for target nic
	Native   []byte // shared object for target process
}

// ErrNotFound says that the store has no artifact of that digest.
var ErrNotFound = errors.New("artifact not found")

// ErrBroken says that what the store has under a digest is not what was put there.
var ErrBroken = errors.New("artifact is broken")

// Store keeps artifacts in a directory.
type Store struct{ root string }

// Open opens the store in the directory root, and makes it where there is none.
func Open(root string) (*Store, error) { return &Store{root: root}, errors.ErrUnsupported }

// Put keeps a.
func (s *Store) Put(a *Artifact) error { return errors.ErrUnsupported }

// Get returns the artifact of that digest.
func (s *Store) Get(digest string) (*Artifact, error) { return nil, errors.ErrUnsupported }

// List returns the digests of all artifacts.
func (s *Store) List() ([]string, error) { return nil, errors.ErrUnsupported }

// Delete removes the artifact of that digest.
func (s *Store) Delete(digest string) error { return errors.ErrUnsupported }

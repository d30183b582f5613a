package artifact

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/lambdanic/lambdanic/api"
)

// Recent is a store that keeps in memory the artifacts that were read last. A deploy needs the same artifact several times, and to read and
// check one takes up to a tenth of the time in which a built revision is deployed.
type Recent struct {
	store *Store
	kept  *lru.Cache[string, *Artifact] // by digest
}

// kept is how many artifacts a Recent keeps: those of some deploys in progress, with the revisions that they replace.
const kept = 16

// NewRecent returns a Recent of a store.
func NewRecent(store *Store) *Recent {
	cache, err := lru.New[string, *Artifact](kept)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &Recent{store, cache}
}

// Get is Store.Get, without the checks if the artifact was read lately. Callers share the result, and must not change it.
func (r *Recent) Get(name string) (*Artifact, error) {
	if a, ok := r.recall(name); ok {
		return a, nil
	}
	a, err := r.store.Get(name)
	if err != nil {
		r.kept.Remove(name)
		return nil, err
	}
	r.kept.Add(name, a)
	return a, nil
}

// Manifest is Store.Manifest, without the checks if the artifact was read lately. Callers share the result, and must not change it.
func (r *Recent) Manifest(name string) (*api.Manifest, error) {
	if a, ok := r.recall(name); ok {
		return &a.Manifest, nil
	}
	return r.store.Manifest(name)
}

// recall returns what is kept, unless the store has deleted it.
func (r *Recent) recall(name string) (*Artifact, bool) {
	a, ok := r.kept.Get(name)
	return a, ok && r.store.has(name)
}

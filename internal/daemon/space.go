package daemon

import (
	"errors"
	"os"

	"github.com/lambdanic/lambdanic/internal/space"
)

// Free space needed in the data directory. The store preallocates its files, about 24 MiB, so that it needs no more to
// remove functions; artifacts are a few hundred KiB each.
const (
	firstSpace  = 64 << 20 // before a store is made
	startSpace  = 8 << 20  // before a store that exists is opened: its log takes the next segment
	changeSpace = 32 << 20 // before a build or a deploy
)

// roomForFirst asks for room for a new store, where there is none.
func (p Paths) roomForFirst() error {
	if _, err := os.Stat(p.store()); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return space.Require(p.Data, firstSpace, "free some there, or choose another directory with --data-dir")
}

// roomToStart asks for room to open the store.
func (p Paths) roomToStart() error {
	return space.Require(p.Data, startSpace, "free some there; NIC and processes serve on meanwhile")
}

// roomToChange asks for room for a build or a deploy.
func (p Paths) roomToChange() error {
	return space.Require(p.Data, changeSpace, "free some there, or remove functions; what is deployed serves on")
}

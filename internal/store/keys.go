package store

import (
	"context"
	"time"

	"github.com/lambdanic/lambdanic/api"
)

// Keys are the keys by which a namespace's packets are tagged: at most one with an even, and one with an odd number.
type Keys struct {
	Required bool   `json:"required,omitempty"` // its lambdas serve no packet without a tag
	Last     uint32 `json:"last,omitempty"`     // the highest number ever used; it stays when the key goes
	Keys     []Key  `json:"keys,omitempty"`     // the latest last
}

// Key is a key, with its secret, and when it was made.
type Key struct {
	Key  api.Key   `json:"key"`
	Made time.Time `json:"made"`
}

// ChangeKeys changes the keys of a namespace, which is made if there is none of that name. The change may run several times; nothing is changed if it
// returns an error.
func (s *Store) ChangeKeys(ctx context.Context, name string, change func(*Keys) error) (*Namespace, error) {
	return s.changeNamespace(ctx, name, func(n *Namespace) error { return change(&n.Keys) })
}

package store

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

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

// ChangeKeys changes the keys of a namespace. The change may run several times; nothing is changed if it returns an error. The namespace is made if
// there is none of that name.
func (s *Store) ChangeKeys(ctx context.Context, name string, change func(*Keys) error) (n *Namespace, err error) {
	hint, err := s.oldest(ctx, freeNumberDir)
	if err == nil {
		err = s.update(ctx, func(tx concurrency.STM) (err error) {
			if n, err = ensureNamespace(tx, name, hint); err != nil {
				return err
			}
			if err := change(&n.Keys); err != nil {
				return err
			}
			return put(tx, namespaceDir+name, n)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("change the keys of namespace %s: %w", name, err)
	}
	return n, nil
}

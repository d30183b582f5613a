package store

import (
	"context"
	"fmt"

	"github.com/lambdanic/lambdanic/api"
)

// ChangeNetworks changes the networks of a namespace, which is made if there is none of that name. The change may run several times; nothing is changed if
// it returns an error.
func (s *Store) ChangeNetworks(ctx context.Context, name string, change func([]api.Network) ([]api.Network, error)) (*Namespace, error) {
	n, err := s.changeNamespace(ctx, name, func(n *Namespace) (err error) {
		n.Networks, err = change(n.Networks)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change the networks of namespace %s: %w", name, err)
	}
	return n, nil
}

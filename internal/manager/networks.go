package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// ErrNoNetwork says that a namespace does not have a network.
var ErrNoNetwork = errors.New("no such network")

// AddNetwork gives a network to a namespace, which is made if there is none of that name. No other namespace may have it.
func (m *Manager) AddNetwork(ctx context.Context, name string, network api.Network) (*api.Namespace, error) {
	err := m.changeNetworks(ctx, name, func(has []api.Network) ([]api.Network, error) {
		if owner := m.ownerOf(network); owner == name {
			return nil, fmt.Errorf("network %s is %w: namespace %s has it already", network, ErrInUse, name)
		} else if owner != "" {
			return nil, fmt.Errorf("network %s is %w: namespace %s has it: take it from there first: `lambdanic namespace network remove %s %s`", network, ErrInUse, owner, owner, network)
		}
		if len(has) >= api.MaxNamespaceNetworks {
			return nil, fmt.Errorf("all places for networks are %w: namespace %s has %d: remove one first: `lambdanic namespace show %s` names them", ErrInUse, name, len(has), name)
		}
		return append(has, network), m.checkNoStage(name, "are of any network")
	})
	if err != nil {
		return nil, err
	}
	m.Log.Info("added a network", "namespace", name, "network", network)
	return m.Namespace(ctx, name)
}

// RemoveNetwork takes a network from a namespace. Then it is nobody's. The functions of a namespace without networks are reached as those of any other.
func (m *Manager) RemoveNetwork(ctx context.Context, name string, network api.Network) (*api.Namespace, error) {
	if n, ok := m.namespace(name); !ok {
		return nil, noNamespace(name)
	} else if n.Number == 0 {
		return nil, noNetwork(name, network)
	}
	err := m.changeNetworks(ctx, name, func(has []api.Network) ([]api.Network, error) {
		i := slices.Index(has, network)
		if i < 0 {
			return nil, noNetwork(name, network)
		}
		return slices.Delete(has, i, i+1), nil
	})
	if err != nil {
		return nil, err
	}
	m.Log.Info("removed a network", "namespace", name, "network", network)
	return m.Namespace(ctx, name)
}

// HasNetworks says whether a namespace has any.
func (m *Manager) HasNetworks(name string) bool {
	n, ok := m.namespace(name)
	return ok && len(n.Networks) > 0
}

func noNetwork(name string, network api.Network) error {
	return fmt.Errorf("%w: namespace %s has no network %s: `lambdanic namespace show %s` names its networks", ErrNoNetwork, name, network, name)
}

// changeNetworks changes the networks of a namespace, and has the node follow.
func (m *Manager) changeNetworks(ctx context.Context, name string, change func([]api.Network) ([]api.Network, error)) error {
	_, err := m.changeNamespace(ctx, name, nodeFirst, func(ctx context.Context) (*store.Namespace, error) { return m.Store.ChangeNetworks(ctx, name, change) })
	if errors.Is(err, errNotInForce) {
		err = fmt.Errorf("change the networks of namespace %s: %w", name, err)
	}
	return err
}

// ownerOf names the namespace that has a network; "" if none has it. No other change may come in between.
func (m *Manager) ownerOf(network api.Network) string {
	for _, n := range m.knownNamespaces() {
		if slices.Contains(n.Networks, network) {
			return n.Name
		}
	}
	return ""
}

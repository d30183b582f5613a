package manager

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/store"
)

// ErrNoKey says that a namespace has no key, or none of that number.
var ErrNoKey = errors.New("no such key")

// AddKey makes the next key for a namespace, which is made if there is none of that name. The key before it stays, for clients that have not changed yet.
func (m *Manager) AddKey(ctx context.Context, name string) (*api.NewKey, error) {
	var secret [api.SecretLen]byte
	_, _ = rand.Read(secret[:]) // never fails
	made := time.Now().UTC().Truncate(time.Second)
	n, err := m.changeKeys(ctx, name, "add a key to", nodeFirst, func(k *store.Keys) error {
		if len(k.Keys) > 1 {
			return fmt.Errorf("%w: namespace %s has the keys %d and %d: remove one that no client uses first: `lambdanic namespace key remove %s %d`",
				ErrInUse, name, k.Keys[0].Key.Number, k.Keys[1].Key.Number, name, k.Keys[0].Key.Number)
		}
		k.Last++
		if len(k.Keys) > 0 && k.Keys[0].Key.Number%2 == k.Last%2 { // they would have one place
			k.Last++
		}
		k.Keys = append(k.Keys, store.Key{Key: api.Key{Namespace: name, Number: k.Last, Secret: secret}, Made: made})
		return nil
	})
	if errors.Is(err, errNotInForce) {
		err = fmt.Errorf("%w. Then `lambdanic namespace show %s` names a key that nobody was shown: remove it", err, name)
	}
	if err != nil {
		return nil, err
	}
	key := n.Keys.Keys[len(n.Keys.Keys)-1].Key
	m.Log.Info("made a key", "key", key)
	return &api.NewKey{Number: key.Number, Key: key}, nil
}

// RemoveKey ends a key: what it tags is refused from then on.
func (m *Manager) RemoveKey(ctx context.Context, name string, number uint32) error {
	if n, ok := m.namespace(name); !ok {
		return noNamespace(name)
	} else if n.Number == 0 {
		return noKey(name, number)
	}
	_, err := m.changeKeys(ctx, name, "remove a key of", gatewayFirst, func(k *store.Keys) error {
		i := slices.IndexFunc(k.Keys, func(key store.Key) bool { return key.Key.Number == number })
		if i < 0 {
			return noKey(name, number)
		}
		if k.Required && len(k.Keys) == 1 {
			return fmt.Errorf("%w: key %d is the only one of namespace %s, which requires tags: make another one first (`lambdanic namespace key add %s`), or `lambdanic namespace tags %s optional`",
				ErrInvalid, number, name, name, name)
		}
		k.Keys = slices.Delete(k.Keys, i, i+1)
		return nil
	})
	if err == nil {
		m.Log.Info("removed a key", "namespace", name, "number", number)
	}
	return err
}

func noKey(name string, number uint32) error {
	return fmt.Errorf("%w: namespace %s has no key %d: `lambdanic namespace show %s` names its keys", ErrNoKey, name, number, name)
}

// RequireTags has the lambdas of a namespace serve tagged packets alone, or others, too.
func (m *Manager) RequireTags(ctx context.Context, name string, required bool) (*api.Namespace, error) {
	if _, ok := m.namespace(name); !ok {
		return nil, noNamespace(name)
	}
	when := nodeFirst
	if required {
		when = gatewayFirst
	}
	_, err := m.changeKeys(ctx, name, "set the tags of", when, func(k *store.Keys) error {
		k.Required = required
		if !required {
			return nil
		}
		if len(k.Keys) == 0 {
			return fmt.Errorf("%w: namespace %s has no key, and nobody could call its functions: make one first: `lambdanic namespace key add %s`", ErrInvalid, name, name)
		}
		return m.checkNoStage(name, "have no tags")
	})
	if err != nil {
		return nil, err
	}
	m.Log.Info("set whether a namespace requires tags", "namespace", name, "required", required)
	return m.Namespace(ctx, name)
}

// checkNoStage refuses what cannot be kept for the packets of a match stage, where the namespace has one.
func (m *Manager) checkNoStage(name, why string) error {
	for _, f := range m.wanted(name) {
		if f.Spec.P4 != "" {
			return fmt.Errorf("%w: function %s/%s is a match stage, whose packets %s: remove it first, or deploy it to another namespace", ErrInvalid, name, f.Name, why)
		}
	}
	return nil
}

// checkStages refuses match stages in namespaces that require of packets what those of a stage do not have.
func (m *Manager) checkStages(fs []store.Function) error {
	for _, f := range fs {
		switch {
		case f.Spec.P4 == "":
		case m.requiresTags(f.Namespace):
			return fmt.Errorf("%w: namespace %s requires tags, and function %s is a match stage, whose packets have none: deploy it to another namespace", ErrInvalid, f.Namespace, f.Name)
		case m.HasNetworks(f.Namespace):
			return fmt.Errorf("%w: namespace %s has networks, and function %s is a match stage, whose packets are of any network: deploy it to another namespace", ErrInvalid, f.Namespace, f.Name)
		}
	}
	return nil
}

// The gateway tags by keys that the node knows, and does so while the node requires tags. So each change has one of them go first.
type order bool

const (
	nodeFirst    order = false
	gatewayFirst order = true
)

// changeKeys changes the keys of a namespace, and has the node and the gateway follow. Errors say what was asked.
func (m *Manager) changeKeys(ctx context.Context, name, asked string, first order, change func(*store.Keys) error) (n *store.Namespace, err error) {
	n, err = m.changeNamespace(ctx, name, first, func(ctx context.Context) (*store.Namespace, error) { return m.Store.ChangeKeys(ctx, name, change) })
	if err != nil {
		return nil, fmt.Errorf("%s namespace %s: %w", asked, name, err)
	}
	return n, nil
}

// describeKeys says of keys what anybody may know.
func describeKeys(k *store.Keys) *api.NamespaceKeys {
	if len(k.Keys) == 0 {
		return nil
	}
	d := &api.NamespaceKeys{Required: k.Required}
	for _, key := range k.Keys {
		d.Keys = append(d.Keys, api.KeyDescription{Number: key.Key.Number, Made: key.Made})
	}
	return d
}

// requiresTags says whether the lambdas of a namespace serve no packet without a tag.
func (m *Manager) requiresTags(namespace string) bool {
	n, ok := m.namespace(namespace)
	return ok && n.Keys.Required
}

// RequiredKey is the key by which to tag calls to the lambdas of a namespace that requires tags; nil for others.
func (m *Manager) RequiredKey(namespace string) *api.Key {
	n, ok := m.namespace(namespace)
	if !ok || !n.Keys.Required || len(n.Keys.Keys) == 0 {
		return nil
	}
	return &n.Keys.Keys[len(n.Keys.Keys)-1].Key
}

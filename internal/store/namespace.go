package store

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lambdanic/lambdanic/api"
)

const (
	namespaceDir  = "namespaces/"             // by name
	lastNumberKey = "namespace-numbers/last"  // the highest index ever used
	freeNumberDir = "namespace-numbers/free/" // by index: the number that its next use gets
)

var errManyNamespaces = fmt.Errorf("all %d namespaces are in use: remove one first", api.MaxNamespaces-1)

// Namespace is what is kept of a namespace, from its first lambda, ikernel, quota, key or network until it is removed.
type Namespace struct {
	Name string `json:"name"`
	// Number is small, and the namespace's own for good. As with workload IDs, the low bits are an index, unique while it is in use, and
	// the high bits are the generation of that use: what a NIC counted for a removed namespace is never taken for a later one's.
	Number   uint32        `json:"number"`
	Quota    api.Quota     `json:"quota,omitzero"`
	Keys     Keys          `json:"keys,omitzero"`
	Networks []api.Network `json:"networks,omitempty"` // the latest last
}

// Namespaces returns all, by name.
func (s *Store) Namespaces(ctx context.Context) ([]Namespace, error) {
	return listBelow[Namespace](ctx, s, namespaceDir)
}

// ChangeQuota changes the quota of a namespace, which is made if there is none of that name.
func (s *Store) ChangeQuota(ctx context.Context, name string, change api.QuotaChange) (*Namespace, error) {
	n, err := s.changeNamespace(ctx, name, func(n *Namespace) error {
		n.Quota = n.Quota.Apply(change)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("set the quota of namespace %s: %w", name, err)
	}
	return n, nil
}

// changeNamespace changes a namespace, which is made if there is none of that name. The change may run several times.
func (s *Store) changeNamespace(ctx context.Context, name string, change func(*Namespace) error) (*Namespace, error) {
	hint, err := s.oldest(ctx, freeNumberDir)
	if err != nil {
		return nil, err
	}
	var changed *Namespace // only once the update has ended well: where the caller hangs up, it goes on for a while
	if err := s.update(ctx, func(tx concurrency.STM) error {
		n, err := ensureNamespace(tx, name, hint)
		if err != nil {
			return err
		}
		changed = n
		if err := change(n); err != nil {
			return err
		}
		return put(tx, namespaceDir+name, n)
	}); err != nil {
		return nil, err
	}
	return changed, nil
}

// HasIkernels says how many ikernels a namespace has, which therefore is not deleted.
type HasIkernels int

func (n HasIkernels) Error() string { return "it has " + english.Plural(int(n), "ikernel", "") }

// DeleteNamespace forgets a namespace, in which nothing may be deployed. If there is none, that is not an error. If it has ikernels, the error is a
// HasIkernels.
func (s *Store) DeleteNamespace(ctx context.Context, name string) error {
	err := s.update(ctx, func(tx concurrency.STM) error {
		tx.Get(joinedDir + name) // when an ikernel joins meanwhile, all this is done again
		ikernels, err := s.IkernelsOf(ctx, name)
		if err != nil {
			return err
		}
		if len(ikernels) > 0 {
			return HasIkernels(len(ikernels))
		}
		var n Namespace
		if ok, err := get(tx, namespaceDir+name, &n); err != nil || !ok {
			return err
		}
		tx.Del(namespaceDir + name)
		tx.Del(joinedDir + name)
		putID(tx, numberKey(n.Number), n.Number+api.MaxNamespaces)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

func numberKey(number uint32) string {
	return fmt.Sprintf("%s%04d", freeNumberDir, number%api.MaxNamespaces)
}

// ensureNamespace returns the namespace of a name, which gets a number now if it is new. The hint is as allocate's.
func ensureNamespace(tx concurrency.STM, name, hint string) (n *Namespace, err error) {
	n = &Namespace{Name: name}
	if ok, err := get(tx, namespaceDir+name, n); ok || err != nil {
		return n, err
	}
	if n.Number, err = nextNumber(tx, hint); err != nil {
		return nil, err
	}
	return n, put(tx, namespaceDir+name, n)
}

func nextNumber(tx concurrency.STM, hint string) (uint32, error) {
	if hint != "" {
		if number, ok, err := getID(tx, hint); ok || err != nil {
			tx.Del(hint)
			return number, err
		}
	}
	last, _, err := getID(tx, lastNumberKey)
	if err != nil {
		return 0, err
	}
	if last >= api.MaxNamespaces-1 {
		return 0, errManyNamespaces
	}
	putID(tx, lastNumberKey, last+1)
	return last + 1, nil
}

// number gives a function the number of its namespace.
func number(tx concurrency.STM, f *Function, hint string) error {
	n, err := ensureNamespace(tx, f.Namespace, hint)
	if err == nil {
		f.NamespaceID = n.Number
	}
	return err
}

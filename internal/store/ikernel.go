package store

import (
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lambdanic/lambdanic/api"
)

// ikernelDir has what is attached on each node, as ikernels/NODE/NAME. A node attaches it again when its daemon starts.
const ikernelDir = "ikernels/"

// joinedDir has, by namespace, the ikernel that was recorded last for it.
const joinedDir = "namespace-ikernels/"

// Ikernel says what a node is to attach.
type Ikernel struct {
	api.IkernelRequest
	Started uint64 `json:"started,omitempty"` // when the process began (supervise.Process), which tells it from a later one of its number
	Order   int64  `json:"order,omitempty"`   // among the ikernels at its port: the least gets packets first
}

func ikernelKey(node, name string) string { return ikernelDir + node + "/" + name }

// Ikernels returns what is to be attached on a node, by name.
func (s *Store) Ikernels(ctx context.Context, node string) ([]Ikernel, error) {
	return listBelow[Ikernel](ctx, s, ikernelKey(node, ""))
}

// IkernelsOf returns what is to be attached on all nodes for a namespace, and what applications have for it.
func (s *Store) IkernelsOf(ctx context.Context, namespace string) ([]Ikernel, error) {
	all, err := listBelow[Ikernel](ctx, s, ikernelDir)
	if err != nil {
		return nil, err
	}
	applications, err := listBelow[Ikernel](ctx, s, applicationDir)
	return slices.DeleteFunc(append(all, applications...), func(i Ikernel) bool { return i.Namespace != namespace }), err
}

// PutIkernel records that a node is to attach an ikernel, by its name. It fails if the ikernel's namespace is not there any more.
func (s *Store) PutIkernel(ctx context.Context, node string, i *Ikernel) error {
	return s.putIkernel(ctx, ikernelKey(node, i.Name), i)
}

func (s *Store) putIkernel(ctx context.Context, key string, i *Ikernel) error {
	err := s.update(ctx, func(tx concurrency.STM) error {
		if i.Namespace != "" {
			if ok, err := get(tx, namespaceDir+i.Namespace, &Namespace{}); err != nil {
				return err
			} else if !ok {
				return fmt.Errorf("namespace %s was removed meanwhile: try again", i.Namespace)
			}
			tx.Put(joinedDir+i.Namespace, key)
		}
		return put(tx, key, i)
	})
	if err != nil {
		return fmt.Errorf("record ikernel %s: %w", i.Name, err)
	}
	return nil
}

// DeleteIkernel records that a node is not to attach an ikernel any more.
func (s *Store) DeleteIkernel(ctx context.Context, node, name string) error {
	return s.deleteIkernel(ctx, ikernelKey(node, name), name)
}

func (s *Store) deleteIkernel(ctx context.Context, key, name string) error {
	err := s.update(ctx, func(tx concurrency.STM) error {
		tx.Del(key)
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget ikernel %s: %w", name, err)
	}
	return nil
}

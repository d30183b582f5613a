package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lambdanic/lambdanic/api"
)

const (
	functionDir  = "functions/"  // what is wanted, and was applied once
	candidateDir = "candidates/" // of deploys in progress
)

// Function is one revision of a deployed function.
type Function struct {
	Namespace   string `json:"namespace"`
	NamespaceID uint32 `json:"namespace_id,omitempty"` // the number of the namespace; 0: an earlier version wrote this
	Name        string `json:"name"`

	Workload uint32        `json:"workload"`
	Revision uint32        `json:"revision"`
	Artifact string        `json:"artifact"`        // NAME@sha256:...
	Spec     api.Spec      `json:"spec"`            // with defaults and the deploy's overrides
	Memory   uint64        `json:"memory"`          // bytes that count for its namespace's quota; 0: an earlier version wrote this
	Nodes    []string      `json:"nodes,omitempty"` // that run it
	Target   api.Target    `json:"target"`          // the one of Spec.Targets that runs it, on every node
	Refused  []api.Refusal `json:"refused,omitempty"`
	Later    string        `json:"later,omitempty"` // what happened to a later revision, which does not serve

	Fused *Fused `json:"fused,omitempty"` // where it is deployed together with others

	Env         map[string]string `json:"env,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`

	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// is tells whether both are one revision of one function.
func (f *Function) is(other *Function) bool {
	return f.Workload == other.Workload && f.Revision == other.Revision
}

// Key is NAMESPACE/NAME.
func (f *Function) Key() string { return f.Namespace + "/" + f.Name }

// Get returns the wanted function of a name.
func (s *Store) Get(ctx context.Context, namespace, name string) (*Function, error) {
	r, err := s.client.Get(ctx, functionDir+namespace+"/"+name)
	if err != nil {
		return nil, fmt.Errorf("read function %s/%s: %w", namespace, name, err)
	}
	if len(r.Kvs) == 0 {
		return nil, fmt.Errorf("%w: %s/%s", ErrNotFound, namespace, name)
	}
	f := new(Function)
	return f, decode(string(r.Kvs[0].Key), r.Kvs[0].Value, f)
}

// List returns all functions of a namespace, of every namespace where it is "", by name.
func (s *Store) List(ctx context.Context, namespace string) ([]Function, error) {
	dir := functionDir
	if namespace != "" {
		dir += namespace + "/"
	}
	return s.list(ctx, dir)
}

// Candidates returns the deploys that are in progress, or that were when the daemon died.
func (s *Store) Candidates(ctx context.Context) ([]Function, error) {
	return s.list(ctx, candidateDir)
}

func (s *Store) list(ctx context.Context, dir string) ([]Function, error) {
	return listBelow[Function](ctx, s, dir)
}

// listBelow returns all values whose keys begin with dir, by key.
func listBelow[T any](ctx context.Context, s *Store, dir string) ([]T, error) {
	r, err := s.client.Get(ctx, dir, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	values := make([]T, len(r.Kvs))
	for i, kv := range r.Kvs {
		if err := decode(string(kv.Key), kv.Value, &values[i]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// Propose writes f as the candidate for its name's next revision, has its nodes try it, and returns it with its workload ID and
// revision. The wanted function of the name stays as it is.
func (s *Store) Propose(ctx context.Context, f Function) (*Function, error) {
	list, err := s.ProposeAll(ctx, []Function{f})
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// ProposeAll is Propose for several functions at once: all become candidates, or none.
func (s *Store) ProposeAll(ctx context.Context, fs []Function) ([]*Function, error) {
	hint, err := s.oldest(ctx, freeDir)
	if err != nil {
		return nil, fmt.Errorf("propose %s: %w", keys(fs), err)
	}
	numberHint, err := s.oldest(ctx, freeNumberDir)
	if err != nil {
		return nil, fmt.Errorf("propose %s: %w", keys(fs), err)
	}
	list := make([]*Function, len(fs))
	err = s.update(ctx, func(tx concurrency.STM) error {
		for i := range fs {
			list[i] = new(fs[i])
			if err := errors.Join(assign(tx, list[i], hint), number(tx, list[i], numberHint)); err != nil {
				return err
			}
		}
		tell(list)
		for _, f := range list {
			if err := errors.Join(put(tx, candidateDir+f.Key(), f), try(tx, f)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("propose %s: %w", keys(fs), err)
	}
	return list, nil
}

// assign gives f its workload ID and revision.
func assign(tx concurrency.STM, f *Function, hint string) error {
	now := time.Now().UTC()
	f.Workload, f.Created, f.Updated = 0, now, now
	// A candidate that was never resolved already owns a workload ID.
	for _, dir := range []string{candidateDir, functionDir} {
		var old Function
		if ok, err := get(tx, dir+f.Key(), &old); err != nil {
			return err
		} else if ok {
			f.Workload, f.Created = old.Workload, old.Created
		}
	}
	var err error
	if f.Workload == 0 {
		if f.Workload, err = allocate(tx, hint); err != nil {
			return err
		}
	}
	f.Revision, err = nextRevision(tx, f.Workload)
	return err
}

func keys(fs []Function) string {
	var list []string
	for i := range fs {
		list = append(list, fs[i].Key())
	}
	return strings.Join(list, ", ")
}

// Promote makes candidates wanted and placed, all of them or none. Each is as the nodes took it. Promoting again
// is no error.
func (s *Store) Promote(ctx context.Context, fs ...*Function) error {
	return s.update(ctx, func(tx concurrency.STM) error {
		for _, f := range fs {
			if err := promote(tx, f); err != nil {
				return fmt.Errorf("promote %s: %w", f.Key(), err)
			}
		}
		return nil
	})
}

func promote(tx concurrency.STM, f *Function) error {
	var c Function
	if ok, err := get(tx, candidateDir+f.Key(), &c); err != nil {
		return err
	} else if !ok || !c.is(f) {
		var now Function
		if ok, err := get(tx, functionDir+f.Key(), &now); err != nil || ok && now.is(f) {
			return err
		}
		return ErrSuperseded
	}
	tx.Del(candidateDir + f.Key())
	var before Function
	if _, err := get(tx, functionDir+f.Key(), &before); err != nil {
		return err
	}
	return errors.Join(put(tx, functionDir+f.Key(), f), place(tx, f, before.Nodes))
}

// Abandon forgets candidates, and has their nodes run what is wanted as before. The workload ID of a name without a wanted function starts
// draining. Other names keep their candidate's Later.
func (s *Store) Abandon(ctx context.Context, cs ...*Function) error {
	return s.update(ctx, func(tx concurrency.STM) error {
		for _, c := range cs {
			if err := abandon(tx, c); err != nil {
				return fmt.Errorf("abandon %s: %w", c.Key(), err)
			}
		}
		return nil
	})
}

func abandon(tx concurrency.STM, c *Function) error {
	var now Function
	if ok, err := get(tx, candidateDir+c.Key(), &now); err != nil || !ok || now.Revision != c.Revision {
		return err
	}
	tx.Del(candidateDir + c.Key())
	var f Function
	if serves, err := get(tx, functionDir+c.Key(), &f); err != nil {
		return err
	} else if !serves {
		drain(tx, c.Workload)
		return place(tx, &Function{Workload: c.Workload}, now.Nodes)
	}
	f.Later = cmp.Or(c.Later, f.Later)
	return errors.Join(put(tx, functionDir+f.Key(), &f), place(tx, &f, now.Nodes))
}

// Delete removes a function, and has its nodes end it. Its workload ID drains until Free.
func (s *Store) Delete(ctx context.Context, namespace, name string) (*Function, error) {
	key := namespace + "/" + name
	var f Function
	err := s.update(ctx, func(tx concurrency.STM) error {
		if ok, err := get(tx, functionDir+key, &f); err != nil {
			return err
		} else if !ok {
			return ErrNotFound
		}
		tx.Del(functionDir + key)
		tx.Del(candidateDir + key)
		drain(tx, f.Workload)
		return place(tx, &Function{Workload: f.Workload}, f.Nodes)
	})
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("%w: %s", ErrNotFound, key)
	case err != nil:
		return nil, fmt.Errorf("remove %s: %w", key, err)
	}
	return &f, nil
}

// update runs change in a transaction, again until no other write came in between. Its error is change's, which wrote
// nothing then, or ErrUnknown.
func (s *Store) update(ctx context.Context, change func(concurrency.STM) error) error {
	refused, err := guard(ctx, s.failed, func() (refused, err error) {
		_, err = concurrency.NewSTM(s.client, func(tx concurrency.STM) error {
			refused = nil // left of an earlier try: tx panics where it cannot read
			if err := ctx.Err(); err != nil {
				return err // the caller has left, and a fence may have come already
			}
			if refused = s.owner.check(tx); refused == nil {
				refused = change(tx)
			}
			return refused
		}, concurrency.WithAbortContext(ctx), concurrency.WithPrefetch(fenceKey, ownerKey)) // both by one question
		return refused, err
	})
	if err != nil && refused == nil {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	s.reserve()
	return err
}

// fenceKey is read by each update. So an update conflicts with a fence that comes before it ends.
const fenceKey = "fence"

// Fence keeps updates whose callers have left from being made from now on. Without one, the store may still be about to make an update of which the caller was
// told ErrUnknown, so that a read says nothing about it.
func (s *Store) Fence(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	if _, err := s.client.Put(ctx, fenceKey, ""); err != nil {
		return fmt.Errorf("end what the store was asked before: %w", err)
	}
	return nil
}

func get(tx concurrency.STM, key string, into any) (bool, error) {
	v := tx.Get(key)
	if v == "" {
		return false, nil
	}
	return true, decode(key, []byte(v), into)
}

func put(tx concurrency.STM, key string, from any) error {
	v, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("write store key %s: %w", key, err)
	}
	tx.Put(key, string(v))
	return nil
}

func decode(key string, value []byte, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("read store key %s: %w", key, err)
	}
	return nil
}

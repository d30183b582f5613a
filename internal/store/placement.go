package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lambdanic/lambdanic/api"
)

// What a node is to do for a workload is below placements/NODE/INDEX/, so that one watch shows the node at once all that one write
// changed. The result is status/NODE/INDEX. The manager's first write for a workload on a node makes the status, and the node deletes it
// once nothing is placed there and nothing runs. So an index without a status runs nowhere.
const (
	placementDir = "placements/"
	wantedKey    = "/wanted" // of the function that is wanted
	triedKey     = "/tried"  // of a deploy's candidate, which runs beside it until it is promoted or abandoned
	statusDir    = "status/"
)

// Placement says that a node is to run a revision of a function.
type Placement struct {
	Node     string     `json:"node"`
	Target   api.Target `json:"target"`
	Device   string     `json:"device,omitempty"` // of the target on that node; "": all devices
	Function *Function  `json:"function"`         // with its workload, its revision and all that it takes to run it
}

// Status is a node's report on one workload.
type Status struct {
	Workload uint32     `json:"workload"`
	Revision uint32     `json:"revision"`
	Target   api.Target `json:"target,omitempty"`
	State    api.State  `json:"state"` // "" until the node has said anything
	Reason   string     `json:"reason,omitempty"`
	Seen     int64      `json:"seen"` // Assignment.Changed of the assignment that this answers
}

// Assignment is all that the store has about one workload on one node.
type Assignment struct {
	Workload uint32
	Wanted   *Placement // nil: none
	Tried    *Placement // nil: none
	Status   *Status    // nil: the workload has nothing on the node
	Changed  int64      // the revision of the store that changed Wanted or Tried last
}

// Answered tells whether Status is about Wanted and Tried as they are now.
func (a *Assignment) Answered() bool {
	if a.Wanted == nil && a.Tried == nil {
		return a.Status == nil
	}
	return a.Status != nil && a.Status.Seen >= a.Changed
}

func placementKey(node string, workload uint32, which string) string {
	return workloadKey(placementDir+node+"/", workload) + which
}

func statusKey(node string, workload uint32) string { return workloadKey(statusDir+node+"/", workload) }

// place has f's nodes run f, and those nodes in before that are not among them run nothing.
func place(tx concurrency.STM, f *Function, before []string) error {
	for _, node := range before {
		if !slices.Contains(f.Nodes, node) {
			if err := displace(tx, node, f.Workload); err != nil {
				return err
			}
		}
	}
	for _, node := range f.Nodes {
		tx.Del(placementKey(node, f.Workload, triedKey))
	}
	return want(tx, f)
}

func want(tx concurrency.STM, f *Function) error { return assignTo(tx, f, wantedKey) }

// try has the nodes of a candidate run it beside the wanted revision.
func try(tx concurrency.STM, c *Function) error { return assignTo(tx, c, triedKey) }

func assignTo(tx concurrency.STM, f *Function, which string) error {
	for _, node := range f.Nodes {
		if key := statusKey(node, f.Workload); tx.Get(key) == "" {
			if err := put(tx, key, &Status{Workload: f.Workload}); err != nil {
				return err
			}
		}
		if err := put(tx, placementKey(node, f.Workload, which), &Placement{Node: node, Target: f.Target, Function: f}); err != nil {
			return err
		}
	}
	return nil
}

// displace has a node end a workload. The node's earlier status does not answer that.
func displace(tx concurrency.STM, node string, workload uint32) error {
	tx.Del(placementKey(node, workload, wantedKey))
	tx.Del(placementKey(node, workload, triedKey))
	return put(tx, statusKey(node, workload), &Status{Workload: workload})
}

// Try has the nodes of candidates run each on its target, in place of where they tried it before.
func (s *Store) Try(ctx context.Context, cs ...*Function) error {
	return s.tryAll(ctx, candidateDir, cs)
}

// Move makes a function that is wanted a candidate of the same revision, for another target.
func (s *Store) Move(ctx context.Context, f *Function) error {
	return s.tryAll(ctx, functionDir, []*Function{f})
}

// tryAll has nodes try functions that are in a directory.
func (s *Store) tryAll(ctx context.Context, dir string, cs []*Function) error {
	return s.update(ctx, func(tx concurrency.STM) error {
		for _, c := range cs {
			var now Function
			if ok, err := get(tx, dir+c.Key(), &now); err != nil {
				return err
			} else if !ok || !now.is(c) {
				return fmt.Errorf("try %s: %w", c.Key(), ErrSuperseded)
			}
			if err := errors.Join(put(tx, candidateDir+c.Key(), c), try(tx, c)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Place ensures that all functions and candidates are placed on these nodes, and nothing on others: an earlier version placed none, and a
// node may have got another name. It also completes what earlier versions wrote: namespaces get numbers, and memory says what a function
// takes.
func (s *Store) Place(ctx context.Context, nodes []string, memory func(*Function) uint64) error {
	for dir, on := range map[string]func(concurrency.STM, *Function) error{
		functionDir:  want,
		candidateDir: try,
	} {
		list, err := s.list(ctx, dir)
		if err != nil {
			return err
		}
		for i := range list {
			f := &list[i]
			if slices.Equal(f.Nodes, nodes) && f.NamespaceID != 0 && f.Memory != 0 {
				continue
			}
			f.Nodes = nodes
			if f.Memory == 0 {
				f.Memory = memory(f)
			}
			if err := s.placeOn(ctx, dir, f, on); err != nil {
				return fmt.Errorf("place %s: %w", f.Key(), err)
			}
		}
	}
	for _, dir := range []string{placementDir, statusDir} {
		if err := s.dropOthers(ctx, dir, nodes); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) placeOn(ctx context.Context, dir string, f *Function, on func(concurrency.STM, *Function) error) error {
	return s.update(ctx, func(tx concurrency.STM) error {
		return errors.Join(number(tx, f, ""), put(tx, dir+f.Key(), f), on(tx, f))
	})
}

// dropOthers deletes what is below a directory for other nodes.
func (s *Store) dropOthers(ctx context.Context, dir string, nodes []string) error {
	r, err := s.client.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return fmt.Errorf("read %s: %w", dir, err)
	}
	for _, kv := range r.Kvs {
		key := string(kv.Key)
		if node, _, _ := strings.Cut(key[len(dir):], "/"); slices.Contains(nodes, node) {
			continue
		}
		err := s.update(ctx, func(tx concurrency.STM) error {
			tx.Del(key)
			return nil
		})
		if err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
	}
	return nil
}

// Assignments lists all that the store has for a node, by the index of its workload, as of a revision of the store.
func (s *Store) Assignments(ctx context.Context, node string) (list []Assignment, revision int64, err error) {
	list, revision, err = s.assignments(ctx, placementDir+node+"/", clientv3.OpGet(statusDir+node+"/", clientv3.WithPrefix()))
	if err != nil {
		return nil, 0, fmt.Errorf("read what is placed on node %s: %w", node, err)
	}
	return list, revision, nil
}

// Assignment is what the store has for a node about one workload.
func (s *Store) Assignment(ctx context.Context, node string, workload uint32) (*Assignment, error) {
	list, _, err := s.assignments(ctx, placementKey(node, workload, "/"), clientv3.OpGet(statusKey(node, workload)))
	if err != nil {
		return nil, fmt.Errorf("read where workload %#x is placed on node %s: %w", workload, node, err)
	}
	if len(list) == 0 {
		return &Assignment{Workload: workload}, nil
	}
	return &list[0], nil
}

// assignments joins the placements below a directory with the statuses that the given read returns.
func (s *Store) assignments(ctx context.Context, dir string, statuses clientv3.Op) (list []Assignment, revision int64, err error) {
	done, err := s.client.Do(ctx, clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet(dir, clientv3.WithPrefix()), statuses}, nil))
	if err != nil {
		return nil, 0, err
	}
	r := done.Txn()
	byIndex := make(map[uint32]*Assignment)
	at := func(workload uint32) *Assignment {
		a := byIndex[workload&maxIndex]
		if a == nil {
			a = &Assignment{Workload: workload}
			byIndex[workload&maxIndex] = a
		}
		return a
	}
	for _, kv := range r.Responses[0].GetResponseRange().Kvs {
		p := new(Placement)
		if err := decode(string(kv.Key), kv.Value, p); err != nil {
			return nil, 0, err
		}
		a := at(p.Function.Workload)
		if strings.HasSuffix(string(kv.Key), triedKey) {
			a.Tried = p
		} else {
			a.Wanted = p
		}
		a.Changed = max(a.Changed, kv.ModRevision)
	}
	for _, kv := range r.Responses[1].GetResponseRange().Kvs {
		st := new(Status)
		if err := decode(string(kv.Key), kv.Value, st); err != nil {
			return nil, 0, err
		}
		at(st.Workload).Status = st
	}
	for _, a := range byIndex {
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Assignment) int { return int(a.Workload&maxIndex) - int(b.Workload&maxIndex) })
	return list, r.Header.Revision, nil
}

// Report records a node's status of a workload, unless the store no longer has the workload there.
func (s *Store) Report(ctx context.Context, node string, st Status) error {
	key := statusKey(node, st.Workload)
	err := s.update(ctx, func(tx concurrency.STM) error {
		if tx.Get(key) == "" {
			return nil
		}
		return put(tx, key, &st)
	})
	if err != nil {
		return fmt.Errorf("report status of workload %#x: %w", st.Workload, err)
	}
	return nil
}

// Ended records that a node runs nothing of a workload, unless it is to run it again.
func (s *Store) Ended(ctx context.Context, node string, workload uint32) error {
	err := s.update(ctx, func(tx concurrency.STM) error {
		for _, which := range []string{wantedKey, triedKey} {
			if tx.Get(placementKey(node, workload, which)) != "" {
				return nil
			}
		}
		tx.Del(statusKey(node, workload))
		return nil
	})
	if err != nil {
		return fmt.Errorf("report the end of workload %#x: %w", workload, err)
	}
	return nil
}

// Statuses returns a node's statuses, by workload ID.
func (s *Store) Statuses(ctx context.Context, node string) (map[uint32]Status, error) {
	r, err := s.client.Get(ctx, statusDir+node+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read statuses of node %s: %w", node, err)
	}
	all := make(map[uint32]Status, len(r.Kvs))
	for _, kv := range r.Kvs {
		var st Status
		if err := decode(string(kv.Key), kv.Value, &st); err != nil {
			return nil, err
		}
		all[st.Workload] = st
	}
	return all, nil
}

package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lambdanic/lambdanic/api"
)

// Watch calls changed with the indexes of workloads whose placements on a node changed after a revision of the store. All that one write
// changed comes in one call. It returns when ctx ends or changed fails, or with an error after which missed changes have to be listed.
func (s *Store) Watch(ctx context.Context, node string, after int64, changed func(indexes []uint32) error) error {
	dir := placementDir + node + "/"
	return s.watch(ctx, dir, after, func(keys []string) error {
		var indexes []uint32
		for _, key := range keys {
			index, _, _ := strings.Cut(key[len(dir):], "/")
			i, err := strconv.ParseUint(index, 10, 16)
			if err != nil {
				return fmt.Errorf("store key %s: %w", key, err)
			}
			if !slices.Contains(indexes, uint32(i)) {
				indexes = append(indexes, uint32(i))
			}
		}
		return changed(indexes)
	})
}

// watch calls seen with the keys of each batch of changes below a directory after a revision, 0 for now, until seen fails. (The watcher
// of clientv3/namespace would cut the prefix off in place, of events that all watchers of an embedded etcd share.)
func (s *Store) watch(ctx context.Context, dir string, after int64, seen func(keys []string) error, opts ...clientv3.OpOption) error {
	// Without this, a member that lost its leader would be silent as long as that lasts. With it, the watch ends.
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	opts = append(opts, clientv3.WithPrefix())
	if after > 0 {
		opts = append(opts, clientv3.WithRev(after+1))
	}
	events := s.client.Watch(ctx, s.prefix+dir, opts...)
	for {
		select {
		case r, ok := <-events:
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case !ok:
				return fmt.Errorf("watch %s: the connection ended", dir)
			case r.Err() != nil:
				return fmt.Errorf("watch %s: %w", dir, r.Err())
			}
			keys := make([]string, len(r.Events))
			for i, e := range r.Events {
				keys[i] = string(e.Kv.Key[len(s.prefix):])
			}
			if err := seen(keys); err != nil {
				return err
			}
		case <-s.failed.done:
			return s.failed.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Await waits until the nodes of a function have answered its placements, and returns their statuses.
func (s *Store) Await(ctx context.Context, f *Function) ([]Status, error) {
	var all []Status
	for _, node := range f.Nodes {
		a, err := s.await(ctx, node, f.Workload)
		if err != nil {
			return nil, fmt.Errorf("wait for node %s to answer for %s: %w", node, f.Key(), err)
		}
		if a.Status == nil {
			return nil, fmt.Errorf("node %s answers for %s: %w", node, f.Key(), ErrSuperseded)
		}
		all = append(all, *a.Status)
	}
	return all, nil
}

// AwaitEnd waits until nodes have ended a workload. Its error says why a node cannot.
func (s *Store) AwaitEnd(ctx context.Context, nodes []string, workload uint32) error {
	for _, node := range nodes {
		a, err := s.await(ctx, node, workload)
		switch {
		case err != nil:
			return fmt.Errorf("wait for node %s to end workload %#x: %w", node, workload, err)
		case a.Status != nil:
			return fmt.Errorf("node %s: %s", node, a.Status.Reason)
		}
	}
	return nil
}

// await waits until a node has answered, or cannot end what it is to end.
func (s *Store) await(ctx context.Context, node string, workload uint32) (*Assignment, error) {
	s.statuses.start(s)
	for {
		changed := s.statuses.next()
		a, err := s.Assignment(ctx, node, workload)
		if err != nil {
			return nil, err
		}
		unplaced := a.Wanted == nil && a.Tried == nil
		if a.Answered() || unplaced && a.Status.State == api.StateError {
			return a, nil
		}
		select {
		case <-changed:
		case <-s.failed.done:
			return nil, s.failed.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// bell wakes those who wait for nodes' statuses. All share one watch: etcd looks only ten times a second for what a new watch has
// missed.
type bell struct {
	once sync.Once
	stop context.CancelFunc
	done sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed by the next change
}

func (b *bell) start(s *Store) {
	b.once.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		b.stop = stop
		b.done.Go(func() {
			for ctx.Err() == nil {
				_ = s.watch(ctx, statusDir, 0, func([]string) error { b.ring(); return nil }, clientv3.WithCreatedNotify())
				select {
				case <-time.After(bellPause):
				case <-s.failed.done:
					return
				case <-ctx.Done():
				}
			}
		})
	})
}

const bellPause = 100 * time.Millisecond // before a broken watch begins again, and rings for what it missed

func (b *bell) close() {
	b.once.Do(func() {}) // never start it from now on
	if b.stop != nil {
		b.stop()
		b.done.Wait()
	}
}

func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

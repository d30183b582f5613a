package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// Workload IDs. The low half is an index into the NIC's dispatch table, unique while it is in use; the high half is the
// generation of that index's use, so that a client that still holds the ID of a removed function never reaches another one.
const (
	maxIndex = 1<<16 - 1 // index 0 stays unused, so that no workload ID is 0

	nextKey     = "workloads/next"      // the highest index ever used
	revisionDir = "workloads/revision/" // by index: the last revision given out, never to be given out again
	drainDir    = "workloads/draining/" // by index: the ID of a removed function that a backend may still run
	freeDir     = "workloads/free/"     // by index: the ID that its next use gets
)

var errFull = errors.New("all 65535 workload IDs are in use: remove a function first")

func workloadKey(dir string, id uint32) string { return fmt.Sprintf("%s%05d", dir, id&maxIndex) }

// getID reads a number that is absent or a workload ID.
func getID(tx concurrency.STM, key string) (uint32, bool, error) {
	v := tx.Get(key)
	if v == "" {
		return 0, false, nil
	}
	id, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		return 0, false, fmt.Errorf("store key %s: %w", key, err)
	}
	return uint32(id), true, nil
}

func putID(tx concurrency.STM, key string, id uint32) {
	tx.Put(key, strconv.FormatUint(uint64(id), 10))
}

// allocate takes an index that was freed, or else a new one. The hint is the key of a freed index, as read
// outside the transaction; a stale hint is harmless, since the transaction reads it again.
func allocate(tx concurrency.STM, hint string) (uint32, error) {
	if hint != "" {
		if id, ok, err := getID(tx, hint); ok || err != nil {
			tx.Del(hint)
			return id, err
		}
	}
	last, _, err := getID(tx, nextKey)
	if err != nil {
		return 0, err
	}
	if last >= maxIndex {
		return 0, errFull
	}
	putID(tx, nextKey, last+1)
	return last + 1, nil
}

// nextRevision counts a workload's revisions up.
func nextRevision(tx concurrency.STM, id uint32) (uint32, error) {
	key := workloadKey(revisionDir, id)
	last, _, err := getID(tx, key)
	putID(tx, key, last+1)
	return last + 1, err
}

// drain marks the workload of a removed function.
func drain(tx concurrency.STM, id uint32) {
	tx.Del(workloadKey(revisionDir, id))
	putID(tx, workloadKey(drainDir, id), id)
}

// oldest returns the key below a directory that was written first: of freed indexes, the one that has been free the longest.
func (s *Store) oldest(ctx context.Context, dir string) (string, error) {
	r, err := s.client.Get(ctx, dir, clientv3.WithPrefix(), clientv3.WithLimit(1), clientv3.WithKeysOnly(),
		clientv3.WithSort(clientv3.SortByModRevision, clientv3.SortAscend))
	if err != nil || len(r.Kvs) == 0 {
		return "", err
	}
	return string(r.Kvs[0].Key), nil
}

// Draining returns the workload IDs whose function is gone, and that are not free yet.
func (s *Store) Draining(ctx context.Context) ([]uint32, error) {
	r, err := s.client.Get(ctx, drainDir, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read draining workloads: %w", err)
	}
	var ids []uint32
	for _, kv := range r.Kvs {
		id, err := strconv.ParseUint(string(kv.Value), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("store key %s: %w", kv.Key, err)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}

// Free lets the index of a draining workload be used again, under the next generation. Call it when no backend runs it.
func (s *Store) Free(ctx context.Context, id uint32) error {
	return s.update(ctx, func(tx concurrency.STM) error {
		key := workloadKey(drainDir, id)
		if drained, ok, err := getID(tx, key); err != nil || !ok || drained != id {
			return err
		}
		tx.Del(key)
		putID(tx, workloadKey(freeDir, id), id+maxIndex+1)
		return nil
	})
}

package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcd keeps no checksums of what lies in its database, so that a bit which a disk loses may turn one function into another, or into
// none. The store keeps one sum over all its keys and values, which every change brings along in its own transaction: each pair's
// hash is added to it by exclusive or, and taken away by the same.

const sumKey = prefix + "sum"

// hash is 0 for a key that is not there.
func hash(key, value string) uint64 {
	if value == "" {
		return 0
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(key), key, value))
	return binary.LittleEndian.Uint64(h[:])
}

// summed is a transaction that keeps account of what it changes. It writes when it is finished, since what the keys held before has to be
// read, and is read at once.
type summed struct {
	concurrency.STM
	old, changed map[string]string // "" where there is no such key; no value of ours is empty
}

func newSummed(tx concurrency.STM) *summed {
	return &summed{tx, make(map[string]string), make(map[string]string)}
}

// Get returns what a key holds, as the transaction leaves it.
func (s *summed) Get(keys ...string) string {
	key := keys[0] // which all of ours are called with
	if v, ok := s.changed[key]; ok {
		return v
	}
	if _, ok := s.old[key]; !ok {
		s.old[key] = s.STM.Get(key)
	}
	return s.old[key]
}

// Put is the STM's.
func (s *summed) Put(key, value string, _ ...clientv3.OpOption) { s.changed[key] = value }

// Del is the STM's.
func (s *summed) Del(key string) { s.changed[key] = "" }

// finish writes what is changed, and the sum.
func (s *summed) finish() error {
	if len(s.changed) == 0 {
		return nil
	}
	unread := []string{sumKey}
	for key := range s.changed {
		if _, ok := s.old[key]; !ok {
			unread = append(unread, key)
		}
	}
	s.STM.Get(unread...) // all at once; each is there to be read again
	sum, err := parseSum(s.STM.Get(sumKey))
	if err != nil {
		return err
	}
	for _, key := range unread[1:] {
		s.old[key] = s.STM.Get(key)
	}
	for key, value := range s.changed {
		sum ^= hash(key, s.old[key]) ^ hash(key, value)
		if value == "" {
			s.STM.Del(key)
		} else {
			s.STM.Put(key, value)
		}
	}
	s.STM.Put(sumKey, formatSum(sum))
	return nil
}

func formatSum(sum uint64) string { return strconv.FormatUint(sum, 16) }

func parseSum(v string) (uint64, error) {
	if v == "" {
		return 0, nil
	}
	sum, err := strconv.ParseUint(v, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("store key %s: %w", sumKey, err)
	}
	return sum, nil
}

// errSum says that keys or values are not those that were written.
var errSum = errors.New("what it holds is not what was written to it")

// checkSum compares the sum with what the store holds, which has to have one if it was open before. Where an earlier version or
// somebody else wrote to it since, that is taken over.
func (s *Store) checkSum(ctx context.Context, wasOpen bool, log *slog.Logger) error {
	r, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return fmt.Errorf("read all keys: %w", err)
	}
	var sum uint64
	kept, changed := "", int64(0)
	for _, kv := range r.Kvs {
		if string(kv.Key) == sumKey {
			kept, changed = string(kv.Value), kv.ModRevision
			continue
		}
		sum ^= hash(string(kv.Key), string(kv.Value))
	}
	switch {
	case kept == formatSum(sum):
		return nil
	case kept == "" && wasOpen, kept != "" && changed == r.Header.Revision:
		return errSum
	case kept != "" && log != nil:
		log.Warn("somebody else has written to the store, or an earlier version: its sum begins anew")
	}
	if _, err := s.client.Put(ctx, sumKey, formatSum(sum)); err != nil {
		return fmt.Errorf("write store key %s: %w", sumKey, err)
	}
	return nil
}

package store

import (
	"context"
	"errors"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// slowKV is a store that is slow to make its first transaction that writes: it hangs up its caller, and makes the transaction later.
type slowKV struct {
	clientv3.KV
	hangUp         func()
	goOn, happened chan struct{}
}

func (kv *slowKV) Txn(context.Context) clientv3.Txn {
	return &slowTxn{Txn: kv.KV.Txn(context.Background()), kv: kv}
}

type slowTxn struct {
	clientv3.Txn
	kv     *slowKV
	writes bool
}

func (t *slowTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

func (t *slowTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Then(ops...)
	t.writes = slices.ContainsFunc(ops, clientv3.Op.IsPut)
	return t
}

func (t *slowTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *slowTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.writes {
		return t.Txn.Commit()
	}
	defer close(t.kv.happened) // panics if the update tries again
	t.kv.hangUp()
	<-t.kv.goOn
	return t.Txn.Commit()
}

// An update whose caller has left is made after a read that did not see it, but not after a fence.
func TestFence(t *testing.T) {
	for name, fenced := range map[string]bool{"fenced": true, "not fenced": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			slow := &slowKV{hangUp: cancel, goOn: make(chan struct{}), happened: make(chan struct{})}
			cfg := config(shortdir.New(t))
			cfg.Wrap = func(kv clientv3.KV) clientv3.KV {
				slow.KV = kv
				return slow
			}
			s, err := Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			if _, err := s.ChangeQuota(ctx, "tenant", api.QuotaChange{}); !errors.Is(err, ErrUnknown) {
				t.Fatalf("the caller left: %v", err)
			}
			if fenced {
				if err := s.Fence(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if all, err := s.Namespaces(t.Context()); err != nil || len(all) != 0 {
				t.Fatalf("before the store has made the update: %v (%v)", all, err)
			}
			close(slow.goOn)
			<-slow.happened
			if all, err := s.Namespaces(t.Context()); err != nil || (len(all) == 0) != fenced {
				t.Errorf("afterwards: %v (%v)", all, err)
			}
		})
	}
}

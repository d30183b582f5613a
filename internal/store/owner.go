package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	ownerKey   = "daemon"      // who serves the instance
	lastKey    = "last-daemon" // who served it last, also after the lease
	ownerLease = 10            // seconds that etcd waits for a silent daemon
	ownerRetry = time.Second
)

// Owner is the daemon that serves an instance with an external store.
type Owner struct {
	Node string `json:"node"`
	Boot string `json:"boot"` // of the node's kernel: nothing of an earlier one still runs
	PID  int    `json:"pid"`
}

// OwnedError says that another node serves the instance.
type OwnedError struct {
	Instance string
	Owner    Owner
}

func (e *OwnedError) Error() string {
	return fmt.Sprintf("instance %s is served by node %s (process %d), which has the same etcd: take it down there, or give this one another --name",
		e.Instance, e.Owner.Node, e.Owner.PID)
}

// ErrNotOwner says that the daemon's lease ended, and that the daemon writes nothing until it has another lease.
var ErrNotOwner = errors.New("this daemon has not heard from etcd for long, and does not know whether the instance is still its own: try again")

// owner keeps the instance for this daemon. Every write checks in its transaction whether the daemon still has the instance.
type owner struct {
	client   *clientv3.Client
	instance string
	self     Owner
	value    string // of ownerKey while self has it

	mu      sync.Mutex
	session *concurrency.Session // the lease, kept alive

	stop  context.CancelFunc
	ended sync.WaitGroup
}

// own takes the instance, and keeps it until Close.
func (s *Store) own(ctx context.Context, r Remote) error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return fmt.Errorf("tell this boot from others: %w", err)
	}
	self := Owner{Node: r.Node, Boot: strings.TrimSpace(string(boot)), PID: os.Getpid()}
	value, err := json.Marshal(self)
	if err != nil {
		return err
	}
	o := &owner{client: s.client, instance: r.Instance, self: self, value: string(value)}
	for deadline := time.Now().Add((ownerLease + 2) * time.Second); ; {
		err = o.claim(ctx)
		if !errors.As(err, new(*OwnedError)) || time.Now().After(deadline) {
			break
		}
		r.Log.Info("waiting for another daemon's lease to end", "because", err)
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	s.owner = o
	keep, stop := context.WithCancel(context.WithoutCancel(ctx))
	o.stop = stop
	o.ended.Go(func() { o.keep(keep, s.failed) })
	return nil
}

// claim takes the instance for this daemon under a new lease. It takes over from an earlier daemon of this node: the lock of the run
// directory says that that daemon is gone. A daemon that had the instance before gets it only where nobody else had it meanwhile: its view of
// the store would otherwise be out of date.
func (o *owner) claim(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	before, err := o.client.Get(limited, ownerKey)
	if err != nil {
		return fmt.Errorf("ask etcd who serves instance %s: %w", o.instance, err)
	}
	if other, ok := o.other(before); ok {
		return &OwnedError{o.instance, other}
	}
	if o.current() != nil {
		last, err := o.client.Get(limited, lastKey)
		if err != nil {
			return fmt.Errorf("ask etcd who served instance %s: %w", o.instance, err)
		}
		if len(last.Kvs) > 0 && string(last.Kvs[0].Value) != o.value {
			other, _ := o.other(last)
			return &OwnedError{o.instance, other}
		}
	}
	unchanged := clientv3.Compare(clientv3.CreateRevision(ownerKey), "=", 0)
	if len(before.Kvs) > 0 {
		unchanged = clientv3.Compare(clientv3.ModRevision(ownerKey), "=", before.Kvs[0].ModRevision)
	}
	lease, err := o.client.Grant(limited, ownerLease)
	if err != nil {
		return fmt.Errorf("ask etcd for a lease on instance %s: %w", o.instance, err)
	}
	taken, err := o.client.Txn(limited).If(unchanged).Then(
		clientv3.OpPut(ownerKey, o.value, clientv3.WithLease(lease.ID)), clientv3.OpPut(lastKey, o.value)).Commit()
	if err != nil {
		return fmt.Errorf("take instance %s at etcd: %w", o.instance, err)
	}
	if !taken.Succeeded {
		return fmt.Errorf("take instance %s at etcd: another daemon did at the same moment: run `lambdanic up` again", o.instance)
	}
	session, err := concurrency.NewSession(o.client, concurrency.WithLease(lease.ID))
	if err != nil {
		return fmt.Errorf("keep the lease on instance %s: %w", o.instance, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.session = session
	return nil
}

// other returns the owner that a key names, if that is another node's daemon.
func (o *owner) other(r *clientv3.GetResponse) (other Owner, ok bool) {
	if len(r.Kvs) == 0 {
		return other, false
	}
	_ = json.Unmarshal(r.Kvs[0].Value, &other) // an unreadable value is not this node's
	return other, other.Node != o.self.Node || other.Boot != o.self.Boot
}

func (o *owner) current() *concurrency.Session {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.session
}

func (o *owner) lease() clientv3.LeaseID { return o.current().Lease() }

// keep takes the instance again each time the lease has ended, until another daemon has it.
func (o *owner) keep(ctx context.Context, failed *failure) {
	for {
		select {
		case <-ctx.Done():
			_ = o.current().Close() // lets others have the instance at once
			return
		case <-o.current().Done():
		}
		for {
			err := o.claim(ctx)
			if err == nil {
				break
			}
			if errors.As(err, new(*OwnedError)) {
				failed.set(err)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(ownerRetry):
			}
		}
	}
}

// check refuses a write unless this daemon has the instance.
func (o *owner) check(tx concurrency.STM) error {
	if o != nil && tx.Get(ownerKey) != o.value {
		return ErrNotOwner
	}
	return nil
}

func (o *owner) close() {
	if o != nil {
		o.stop()
		o.ended.Wait()
	}
}

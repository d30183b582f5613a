package nic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/internal/xdp"
)

// accounts are the counters of namespaces. The NIC program counts by slot alone, and each slot's record names a namespace: a namespace's
// counters are the sum of those of its slots, and of what slots had counted that are free again. So a packet pays nothing for them. The sum
// is exact: a slot's counters move to its namespace's past as the slot is freed, when nothing runs there any more (close). The only counts
// that are missed are errors for calls and messages that a revision left behind because its clients kept it for too long (needed).
//
// The past is kept in a map of its own, pinned beside the NIC's. So it lives exactly as long as the slots' counters do, whatever becomes of
// the daemon.
type accounts struct {
	mu    sync.Mutex        // taken last
	stats *ebpf.Map         // ln_slot_stats
	past  *ebpf.Map         // of account, by the index of its namespace
	slots map[uint32]uint32 // the namespaces of the slots that count

	graceless sync.Once
}

// account is the past of one namespace.
type account struct {
	Namespace uint32 // its number: an earlier namespace may have left its past at this index
	// Slot is being freed, and its counters are in Stats: if the daemon dies before they are zero, the next one does not add them again.
	// 0: none.
	Slot               uint32
	Workload, Revision uint32 // in that slot
	Stats              program.Stats
}

// index is where a namespace's account is.
func index(namespace uint32) uint32 { return namespace % api.MaxNamespaces }

// openAccounts opens the pinned map, or makes it.
func openAccounts(pin string, stats *ebpf.Map) (*accounts, error) {
	spec := &ebpf.MapSpec{
		Name: "ln_accounts", Type: ebpf.Hash, KeySize: 4, ValueSize: uint32(unsafe.Sizeof(account{})), MaxEntries: api.MaxNamespaces, Flags: unix.BPF_F_NO_PREALLOC,
	}
	past, err := ebpf.LoadPinnedMap(pin, nil)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if past, err = ebpf.NewMap(spec); err != nil {
			return nil, fmt.Errorf("make the accounts of namespaces: %w", err)
		}
		if err := past.Pin(pin); err != nil {
			return nil, errors.Join(fmt.Errorf("pin the accounts of namespaces: %w", err), past.Close())
		}
	case err != nil:
		return nil, fmt.Errorf("open the accounts of namespaces: %w", err)
	}
	if err := spec.Compatible(past); err != nil {
		return nil, errors.Join(fmt.Errorf("open the accounts of namespaces: %w", err), past.Close())
	}
	return &accounts{stats: stats, past: past, slots: map[uint32]uint32{}}, nil
}

// open has a slot count for its namespace from now on.
func (a *accounts) open(r *module.Revision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.Record.NamespaceId != 0 {
		a.slots[r.Slot] = r.Record.NamespaceId
	}
}

// adopt is open for a slot of an earlier daemon, which may have died while it freed the slot.
func (a *accounts) adopt(r *module.Revision) error {
	a.open(r)
	if r.Record.NamespaceId == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old, err := a.of(r.Record.NamespaceId)
	if err != nil || old == nil || old.Slot != r.Slot || old.Workload != r.Record.Workload || old.Revision != r.Record.Revision {
		return err
	}
	return a.clear(r.Slot, old)
}

// of reads the account of a namespace, nil for none.
func (a *accounts) of(namespace uint32) (*account, error) {
	var old account
	err := a.past.Lookup(index(namespace), &old)
	switch {
	case errors.Is(err, ebpf.ErrKeyNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the account of namespace %d: %w", namespace, err)
	case old.Namespace != namespace:
		return nil, nil
	}
	return &old, nil
}

func (a *accounts) put(n *account) error {
	if err := a.past.Put(index(n.Namespace), n); err != nil {
		return fmt.Errorf("write the account of namespace %d: %w", n.Namespace, err)
	}
	return nil
}

// close moves what a slot counted to its namespace's past. The slot's program can no longer be reached. The daemon may die at any step.
func (a *accounts) close(r *module.Revision, reached func(step string)) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	namespace, ok := a.slots[r.Slot]
	if !ok {
		return nil
	}
	delete(a.slots, r.Slot)
	n, err := a.of(namespace)
	if err != nil {
		return err
	}
	if n == nil && a.isRemoved(namespace) {
		return nil
	} else if n == nil {
		n = &account{Namespace: namespace}
	}
	stats, err := a.read(r.Slot)
	if err != nil {
		return err
	}
	addStats(&n.Stats, &stats)
	n.Slot, n.Workload, n.Revision = r.Slot, r.Record.Workload, r.Record.Revision
	if err := a.put(n); err != nil {
		return err
	}
	reached("counters added to the past")
	return a.clear(r.Slot, n)
}

// isRemoved says whether a later namespace has the index of one without an account.
func (a *accounts) isRemoved(namespace uint32) bool {
	var other account
	err := a.past.Lookup(index(namespace), &other)
	return err == nil && other.Namespace > namespace
}

// clear ends close.
func (a *accounts) clear(slot uint32, n *account) error {
	if err := zeroStats(a.stats, slot); err != nil {
		return err
	}
	n.Slot, n.Workload, n.Revision = 0, 0, 0
	return a.put(n)
}

func (a *accounts) read(slot uint32) (program.Stats, error) {
	var cpus []program.Stats
	if err := a.stats.Lookup(slot, &cpus); err != nil {
		return program.Stats{}, fmt.Errorf("read the counters of slot %d: %w", slot, err)
	}
	return sumStats(cpus), nil
}

// all reads what each namespace counted, by its number.
func (a *accounts) all() (map[uint32]backend.Stats, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sums := map[uint32]program.Stats{}
	var at uint32
	var n account
	entries := a.past.Iterate()
	for entries.Next(&at, &n) {
		sums[n.Namespace] = n.Stats
	}
	if err := entries.Err(); err != nil {
		return nil, fmt.Errorf("read the accounts of namespaces: %w", err)
	}
	for slot, namespace := range a.slots {
		stats, err := a.read(slot)
		if err != nil {
			return nil, err
		}
		sum := sums[namespace]
		addStats(&sum, &stats)
		sums[namespace] = sum
	}
	all := make(map[uint32]backend.Stats, len(sums))
	for namespace, s := range sums {
		all[namespace] = reported(&s)
	}
	return all, nil
}

// forget is close for a slot that has counted nothing for a namespace.
func (a *accounts) forget(slot uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.slots, slot)
}

// closeAccount moves the counters of a revision that is being freed, unless it never served or is of no namespace.
func (n *NIC) closeAccount(r *revision) error {
	if !r.served || r.Record.NamespaceId == 0 {
		n.accounts.forget(r.Slot)
		return nil
	}
	if err := xdp.Grace(); err != nil { // a packet that is under way still counts
		n.accounts.graceless.Do(func() {
			n.cfg.Log.Warn("a packet that is under way while a revision is freed may be missing in its namespace's counters", "because", err)
		})
	}
	return n.accounts.close(&r.Revision, n.cfg.reached)
}

// Accounts reads what each namespace's lambdas counted, by the namespace's number. It does not wait for deploys.
func (n *NIC) Accounts(context.Context) (map[uint32]backend.Stats, error) {
	n.running.RLock()
	defer n.running.RUnlock()
	if n.closed {
		return nil, nil
	}
	return n.accounts.all()
}

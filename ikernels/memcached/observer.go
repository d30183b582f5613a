// Package memcached is the ikernel memcached-cache: it answers GETs for a running, unmodified memcached.
package memcached

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
	"github.com/lambdanic/lambdanic/internal/mapped"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem observe -type mc_count -type mc_loss -type mc_connection_limit -type mc_guard_limit Observe observe.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem get -type mc_cache_limit -type mc_get_limit -type mc_get_count -type mc_item -type mc_sketch_limit Get get.bpf.c

// An Observer sees what the servers at one TCP port of a network namespace read and send, and keeps guards (guard.h): for each key, whether
// a write is under way, and a number that changes with every write.
type Observer struct {
	objects ObserveObjects
	links   []link.Link
	secret  uint64 // begins the hash of each key
	guards  []atomic.Uint64
}

// allKeys is the guard of the writes that may change any key.
const allKeys = uint32(ObserveMcGuardLimitMC_GUARD_ALL)

// Counts say what an Observer has seen.
type Counts struct {
	Changes    uint64            // commands that change one key
	ChangesAll uint64            // what may change any key: flush_all, and all that is read on a lost connection
	Found      uint64            // lost connections whose commands' boundaries became known again
	Lost       map[string]uint64 // connections whose commands' boundaries became unknown, by why
}

// observe begins to observe a TCP port of the calling thread's network namespace. Connections that exist already are joined. Keys share so many
// guards, a power of two. It needs root, or CAP_BPF and CAP_PERFMON.
func observe(port uint16, guards uint32) (*Observer, error) {
	cookie, err := namespaceCookie()
	if err != nil {
		return nil, fmt.Errorf("find the network namespace: %w", err)
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit on locked memory: %w: run as root", err)
	}
	o := &Observer{}
	// Kernels that cannot do the first have no need for it.
	if o.load(cookie, port, guards, true) != nil {
		err = o.load(cookie, port, guards, false)
	}
	if err != nil {
		return nil, kernel.Fails("does not load the observer of memcached", err)
	}
	if o.guards, err = mapped.Array[atomic.Uint64](o.objects.McGuards); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	if err := o.attach(); err != nil {
		return nil, errors.Join(kernel.Fails("does not let sockets be observed", err), o.Close())
	}
	return o, nil
}

func (o *Observer) load(cookie uint64, port uint16, guards uint32, preemptible bool) error {
	spec, err := LoadObserve()
	if err != nil {
		return err
	}
	var secret [8]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	o.secret = binary.NativeEndian.Uint64(secret[:])
	spec.Maps["mc_guards"].MaxEntries = uint32(ObserveMcGuardLimitMC_GUARD_KEYS) + guards
	if err := setVariables(spec, map[string]any{
		"mc_netns": cookie, "mc_port": port, "mc_secret": o.secret, "mc_guard_mask": uint64(guards) - 1, "mc_preemptible": preemptible,
	}); err != nil {
		return err
	}
	return spec.LoadAndAssign(&o.objects, nil)
}

func (o *Observer) attach() error {
	// Beginnings first: a connection that begins in between is seen from its first byte, or joined.
	p := &o.objects.ObservePrograms
	programs := []*ebpf.Program{p.McState0, p.McEnd0, p.McSend, p.McRead0}
	if !kernel.Before(kernel.Release(), "7.0") {
		programs = append(programs, p.McState1, p.McState2, p.McState3, p.McEnd1, p.McEnd2, p.McEnd3, p.McRead1, p.McRead2, p.McRead3)
	}
	for _, program := range programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return err
		}
		o.links = append(o.links, l)
	}
	return nil
}

// Close ends the observation.
func (o *Observer) Close() error {
	var errs []error
	for _, l := range o.links {
		errs = append(errs, l.Close())
	}
	errs = append(errs, mapped.Unmap(o.guards), o.objects.Close())
	o.links, o.guards = nil, nil
	return errors.Join(errs...)
}

// guardOf is the number of a key's guard (mc_guard_of in guard.h).
func (o *Observer) guardOf(hash uint64) uint32 {
	keys := uint32(ObserveMcGuardLimitMC_GUARD_KEYS)
	return keys + uint32(hash&uint64(uint32(len(o.guards))-keys-1))
}

// guard is a guard's word, and whether no write is pending.
func (o *Observer) guard(index uint32) (word uint64, free bool) {
	word = o.guards[index].Load()
	return word, word%uint64(ObserveMcGuardLimitMC_GUARD_PENDING) == 0
}

// hash is a key's hash (hash.h).
func (o *Observer) hash(key []byte) uint64 {
	h := o.secret
	for _, c := range key {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Counts returns what was seen so far.
func (o *Observer) Counts() (Counts, error) {
	var counts [ObserveMcCountMC_COUNT_MAX]uint64
	if err := o.objects.McCounts.Get(&counts); err != nil {
		return Counts{}, fmt.Errorf("read the observer's counters: %w", err)
	}
	var losses [ObserveMcLossMC_LOSS_MAX]uint64
	if err := o.objects.McLosses.Get(&losses); err != nil {
		return Counts{}, fmt.Errorf("read the observer's counters: %w", err)
	}
	c := Counts{
		Changes: counts[ObserveMcCountMC_COUNT_CHANGES], ChangesAll: counts[ObserveMcCountMC_COUNT_CHANGES_ALL],
		Found: counts[ObserveMcCountMC_COUNT_FOUND], Lost: map[string]uint64{},
	}
	for why, n := range losses {
		c.Lost[lossNames[why]] = n
	}
	return c, nil
}

// Losses is how many connections were lost, for any reason.
func (c Counts) Losses() (n uint64) {
	for _, lost := range c.Lost {
		n += lost
	}
	return n
}

// lossNames say why a connection was lost (enum mc_loss).
var lossNames = [ObserveMcLossMC_LOSS_MAX]string{"joined", "command", "response", "passed", "bytes"}

// namespaceCookie is the kernel's number of the calling thread's network namespace.
func namespaceCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// setVariables gives the constants of a BPF object their values.
func setVariables(spec *ebpf.CollectionSpec, values map[string]any) error {
	for name, value := range values {
		if err := spec.Variables[name].Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

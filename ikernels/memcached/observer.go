// Package memcached is the ikernel memcached-cache: it answers GETs for a running, unmodified memcached.
package memcached

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

//go:generate go tool bpf2go -target bpfel -no-strip -output-stem observe -type mc_count -type mc_loss -type mc_connection_limit -type mc_guard_limit -type mc_server_limit -type mc_server -type mc_server_key -type mc_place -type mc_datagram_key -type mc_phase -type mc_connection Observe observe.bpf.c
//go:generate go tool bpf2go -target bpfel -no-strip -output-stem get -type mc_cache_limit -type mc_get_limit -type mc_get_count -type mc_item -type mc_sketch_limit Get get.bpf.c

// An Observer sees what servers read and send, and keeps guards of each (guard.h): for each key, whether a write is under way, and a number that
// changes with every write. Its programs are in the kernel while it has servers. The zero value has none.
type Observer struct {
	mu      sync.Mutex
	objects *ObserveObjects // nil: not loaded
	links   []link.Link
	secret  uint64 // begins the hash of each key
	epoch   uint32
	ports   [1 << 16]uint16 // servers at each port
	numbers uint64          // given to servers
	servers [ObserveMcServerLimitMC_SERVERS]*observed
}

// observe begins to observe the server at a port of the calling thread's network namespace. Connections that exist already are joined. Keys share so
// many guards, a power of two. It needs root, or CAP_BPF and CAP_PERFMON.
func (o *Observer) observe(port uint16, guards uint32) (*observed, error) {
	cookie, err := namespaceCookie()
	if err != nil {
		return nil, fmt.Errorf("find the network namespace: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.start(); err != nil {
		return nil, err
	}
	s := &observed{observer: o, secret: o.secret, key: ObserveMcServerKey{Netns: cookie, Port: uint64(port)}}
	if err := o.add(s, guards); err != nil {
		return nil, errors.Join(err, o.remove(s))
	}
	return s, nil
}

// start loads and attaches the programs, unless it has been done.
func (o *Observer) start() (err error) {
	if o.objects != nil {
		return nil
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("lift the limit on locked memory: %w: run as root", err)
	}
	// Kernels that cannot do the first have no need for it.
	if o.load(true) != nil {
		err = o.load(false)
	}
	if err != nil {
		return kernel.Fails("does not load the observer of memcached", err)
	}
	if err := o.attach(); err != nil {
		return errors.Join(kernel.Fails("does not let sockets be observed", err), o.stop())
	}
	return nil
}

func (o *Observer) load(preemptible bool) error {
	spec, err := LoadObserve()
	if err != nil {
		return err
	}
	var secret [8]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	o.secret = binary.NativeEndian.Uint64(secret[:])
	if err := setVariables(spec, map[string]any{"mc_secret": o.secret, "mc_preemptible": preemptible}); err != nil {
		return err
	}
	var objects ObserveObjects
	if err := spec.LoadAndAssign(&objects, nil); err != nil {
		return err
	}
	o.objects = &objects
	return nil
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

// stop ends all observation.
func (o *Observer) stop() error {
	var errs []error
	for _, l := range o.links {
		errs = append(errs, l.Close())
	}
	errs = append(errs, o.objects.Close())
	o.links, o.objects = nil, nil
	return errors.Join(errs...)
}

// add has the programs observe a server.
func (o *Observer) add(s *observed, guards uint32) error {
	place := slices.Index(o.servers[:], nil)
	if place < 0 {
		return fmt.Errorf("%d servers are observed, and no more can be", len(o.servers))
	}
	o.numbers++
	s.number = o.numbers*uint64(len(o.servers)) + uint64(place)
	o.servers[place] = s
	if err := s.makeGuards(guards); err != nil {
		return err
	}
	if err := o.objects.McPlaces.Put(uint32(place), &ObserveMcPlace{Server: s.number}); err != nil {
		return fmt.Errorf("begin to count what memcached reads: %w", err)
	}
	if err := o.objects.McGuardsOf.Put(uint32(place), s.guardMap); err != nil {
		return kernel.Fails("does not let servers have guards", err)
	}
	err := o.objects.McServers.Update(&s.key, &ObserveMcServer{Number: s.number, GuardMask: uint64(guards) - 1}, ebpf.UpdateNoExist)
	if errors.Is(err, ebpf.ErrKeyExist) {
		return fmt.Errorf("memcached at port %d is observed for another cache: detach that first; `lambdanic ik list` shows its name", s.key.Port)
	}
	if err != nil {
		return fmt.Errorf("observe memcached: %w", err)
	}
	s.known = true
	o.ports[s.key.Port]++
	return o.changed()
}

// changed has the programs find the servers of sockets anew, after one has come or gone.
func (o *Observer) changed() error {
	o.epoch++
	if err := errors.Join(o.objects.McPorts.Set(&o.ports), o.objects.McEpoch.Set(o.epoch)); err != nil {
		return fmt.Errorf("tell the observer which servers there are: %w", err)
	}
	return nil
}

// remove ends the observation of a server.
func (o *Observer) remove(s *observed) error {
	var errs []error
	if s.known {
		s.known = false
		o.ports[s.key.Port]--
		errs = append(errs, o.objects.McServers.Delete(&s.key), o.changed())
		_, err := o.forget(&s.key, anyOf)
		errs = append(errs, err)
	}
	if i := slices.Index(o.servers[:], s); i >= 0 {
		errs = append(errs, o.objects.McPlaces.Put(uint32(i), &ObserveMcPlace{}))
		// This waits for the programs that have found the server. Then the place can be another's.
		if err := o.objects.McGuardsOf.Delete(uint32(i)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			errs = append(errs, err)
		}
		o.servers[i] = nil
	}
	errs = append(errs, s.freeGuards())
	if !slices.ContainsFunc(o.servers[:], func(s *observed) bool { return s != nil }) {
		errs = append(errs, o.stop())
	}
	return errors.Join(errs...)
}

// forget forgets those that have read a server's datagrams, as far as which says. It returns the others.
func (o *Observer) forget(server *ObserveMcServerKey, which func(*ObserveMcConnection) bool) (map[ObserveMcDatagramKey]ObserveMcConnection, error) {
	var others map[ObserveMcDatagramKey]ObserveMcConnection
	err := ebpf.ErrIterationAborted // as by threads that read meanwhile
	for tries := 0; errors.Is(err, ebpf.ErrIterationAborted) && tries < 8; tries++ {
		var keys []ObserveMcDatagramKey
		var key ObserveMcDatagramKey
		var connection ObserveMcConnection
		others = map[ObserveMcDatagramKey]ObserveMcConnection{}
		all := o.objects.McDatagrams.Iterate()
		for all.Next(&key, &connection) {
			switch {
			case key.At != *server:
			case which(&connection):
				keys = append(keys, key)
			default:
				others[key] = connection
			}
		}
		err = all.Err()
		for i := range keys {
			if failed := o.objects.McDatagrams.Delete(&keys[i]); failed != nil && !errors.Is(failed, ebpf.ErrKeyNotExist) {
				err = errors.Join(err, failed)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("forget who has read datagrams: %w", err)
	}
	return others, nil
}

// anyOf is all that a server's threads have read.
func anyOf(*ObserveMcConnection) bool { return true }

// hasExecuted says that a thread has executed all that it read: if it reads again it begins anew, and those of a server that has ended never do.
func hasExecuted(c *ObserveMcConnection) bool {
	return !isPending(c) && c.Lost == 0 && c.Request.Phase == uint8(ObserveMcPhaseMC_PHASE_BEGIN)
}

// isPending says that a thread has read writes that it has not executed. Their guards are closed.
func isPending(c *ObserveMcConnection) bool { return c.Head != c.Tail || c.More != 0 }

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

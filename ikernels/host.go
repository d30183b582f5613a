package ikernels

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

// A Host has the ikernels that this machine's applications attach to their sockets.
type Host struct {
	demux   *demux.Demux
	flows   *ebpf.Map // flows.h
	sockets *ebpf.Map
	faults  *ebpf.Map       // faults.h
	events  *ringbuf.Reader // of them
	watched chan struct{}   // closed when nobody reads them any more

	mu      sync.Mutex
	numbers uint32              // given to ikernels
	onFault func(*Fault, Owner) // nil: nobody wants to know
	all     map[*Ikernel]bool
	places  []*place
	streams map[uint64]*stream // by cookies
	sweeps  *time.Timer        // until they are looked at again; nil: nothing is to be found

	connections *ebpf.Map // connections.h
	listeners   *ebpf.Map // the TCP sockets that listen, so that the daemon knows when they close
}

// A place is where sockets of one ikernel with the same addresses are (flows.h).
type place struct {
	addresses
	ikernel *Ikernel
	flows   []echoIkFlow
	ports   []*port
	sockets [echoIkLimitIK_SOCKETS]uint64 // their cookies; 0: none
}

// NewHost returns a Host without ikernels. It needs root.
func NewHost(d *demux.Demux) (*Host, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit on locked memory: %w: run as root", err)
	}
	spec, err := loadEcho()
	if err != nil {
		return nil, err
	}
	h := &Host{demux: d, all: map[*Ikernel]bool{}, places: make([]*place, echoIkLimitIK_PLACES), streams: map[uint64]*stream{}}
	if h.flows, err = ebpf.NewMap(spec.Maps["ik_flows"]); err != nil {
		return nil, kernel.Fails("has no map for addresses", err)
	}
	if h.sockets, err = ebpf.NewMap(spec.Maps["ik_sockets"]); err != nil {
		return nil, errors.Join(kernel.Fails("has no map for sockets", err), h.flows.Close())
	}
	if h.faults, err = ebpf.NewMap(spec.Maps["ik_faults"]); err != nil {
		return nil, errors.Join(kernel.Fails("has no map for faults", err), h.Close())
	}
	if err := errors.Join(h.openStreams(), h.openFaults()); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// OnFault has f called for each ikernel that faults. It may call nothing of the Host.
func (h *Host) OnFault(f func(*Fault, Owner)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onFault = f
}

// Close ends all ikernels.
func (h *Host) Close() error {
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.all))
	h.mu.Unlock()
	var errs []error
	for _, k := range all {
		errs = append(errs, k.Close())
	}
	h.closeStreams()
	return errors.Join(append(errs, h.closeFaults(), h.faults.Close(), h.connections.Close(), h.listeners.Close(), h.sockets.Close(), h.flows.Close())...)
}

// sweep gives up the places whose sockets are all closed.
func (h *Host) sweep() error {
	var errs []error
	for i, p := range h.places {
		if p != nil && !h.isUsed(p, i) {
			errs = append(errs, h.leave(i))
		}
	}
	return errors.Join(errs...)
}

// isUsed forgets the sockets of a place that are closed, and says whether it has others.
func (h *Host) isUsed(p *place, number int) bool {
	used := false
	for i, cookie := range p.sockets {
		var now uint64
		if cookie != 0 && (h.sockets.Lookup(slot(number, i), &now) != nil || now != cookie) {
			p.sockets[i] = 0
		}
		used = used || p.sockets[i] != 0
	}
	return used
}

// slot is where the i-th socket of a place is.
func slot(place, i int) uint32 { return uint32(place)*uint32(echoIkLimitIK_SOCKETS) + uint32(i) }

// placeOf finds the place of an ikernel's sockets with these addresses, or makes one.
func (h *Host) placeOf(k *Ikernel, s *socket) (int, error) {
	free := -1
	for i, p := range h.places {
		switch {
		case p == nil && free < 0:
			free = i
		case p != nil && p.ikernel == k && p.addresses == s.addresses:
			return i, nil
		}
	}
	if free < 0 {
		return 0, fmt.Errorf("%d addresses have ikernels, and no more can: detach sockets first", len(h.places))
	}
	p := &place{addresses: s.addresses, ikernel: k}
	h.places[free] = p
	if err := p.open(uint32(free), s); err != nil {
		return 0, errors.Join(err, h.leave(free))
	}
	return free, nil
}

// open has the kernel hand the socket's datagrams over to the ikernel.
func (p *place) open(number uint32, s *socket) error {
	interfaces, own, err := s.reach()
	if err != nil {
		return err
	}
	k := p.ikernel
	for _, a := range own {
		flow := s.flow(a, k.number)
		if err := k.host.flows.Update(&flow, number, ebpf.UpdateNoExist); err != nil {
			return fmt.Errorf("register address %s: %w", a, err)
		}
		p.flows = append(p.flows, flow)
	}
	return s.inNamespace(func() error {
		p.ports, err = k.open(s, interfaces)
		return err
	})
}

// leave gives a place up.
func (h *Host) leave(number int) error {
	p := h.places[number]
	h.places[number] = nil
	var errs []error
	if g := p.ikernel.generator; g != nil {
		p.ikernel.generator = nil // which has one place
		errs = append(errs, g.stop())
	}
	for _, port := range p.ports {
		errs = append(errs, p.ikernel.leave(port))
	}
	for i := range p.flows {
		errs = append(errs, h.flows.Delete(&p.flows[i]))
	}
	for i, cookie := range p.sockets {
		if cookie != 0 {
			errs = append(errs, h.take(p, number, i))
		}
	}
	return errors.Join(errs...)
}

// take takes a socket out of a place. It may just have closed.
func (h *Host) take(p *place, number, i int) error {
	p.sockets[i] = 0
	if err := h.sockets.Delete(slot(number, i)); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("detach a socket: %w", err)
	}
	return nil
}

// find finds a socket's place in an ikernel, and which of the place's sockets it is.
func (h *Host) find(k *Ikernel, cookie uint64) (number, i int, ok bool) {
	for number, p := range h.places {
		if p == nil || p.ikernel != k {
			continue
		}
		if i := slices.Index(p.sockets[:], cookie); i >= 0 {
			return number, i, true
		}
	}
	return 0, 0, false
}

// checkOthers refuses a socket whose datagrams another ikernel gets for other sockets alone: it cannot tell them apart.
func (h *Host) checkOthers(k *Ikernel, s *socket) (err error) {
	var own []netip.Addr
	for _, p := range h.places {
		if p == nil || p.ikernel == k || p.namespace != s.namespace || p.own.Port() != s.own.Port() || slices.Contains(p.sockets[:], s.cookie) {
			continue
		}
		if own == nil {
			if _, own, err = s.reach(); err != nil {
				return err
			}
		}
		for _, a := range own {
			if slices.Contains(p.flows, s.flow(a, p.ikernel.number)) {
				return errors.New("another ikernel has a socket that shares an address with this one, and not this one: attach it to all of them first")
			}
		}
	}
	return nil
}

// enter puts a socket into a place.
func (h *Host) enter(number int, s *socket) error {
	p := h.places[number]
	i := slices.Index(p.sockets[:], 0)
	if i < 0 {
		return fmt.Errorf("%d sockets with this address have the ikernel, and no more can", len(p.sockets))
	}
	if err := h.sockets.Update(slot(number, i), uint64(s.fd), ebpf.UpdateNoExist); err != nil {
		return errors.Join(kernel.Fails("does not let the socket have an ikernel", err), h.sweep())
	}
	p.sockets[i] = s.cookie
	return nil
}

// dup keeps a socket open for as long as it is looked at.
func dup(fd int) (int, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("use descriptor %d: %w", fd, err)
	}
	return own, nil
}

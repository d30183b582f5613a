package ikernels

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

// A stream is a TCP socket that has, or had, an ikernel. As the kernel does not let a connection go before it closes, the ikernel comes and goes (stream.bpf.c).
type stream struct {
	own     netip.AddrPort
	peer    netip.AddrPort // invalid: it listens
	listens bool
	ikernel *Ikernel // nil: none
	coll    *ebpf.Collection
}

func (s *stream) close() { s.coll.Close() }

// openStreams makes the maps that all TCP sockets share.
func (h *Host) openStreams() error {
	spec, err := loadStream()
	if err != nil {
		return err
	}
	if h.connections, err = ebpf.NewMap(spec.Maps["ik_connections"]); err != nil {
		return kernel.Fails("has no map for connections", err)
	}
	listeners := spec.Maps["ik_streams"]
	listeners.MaxEntries = uint32(echoIkLimitIK_STREAMS)
	if h.listeners, err = ebpf.NewMap(listeners); err != nil {
		return errors.Join(kernel.Fails("has no map for sockets that listen", err), h.connections.Close())
	}
	return nil
}

// closeStreams forgets all sockets. They get all of their messages.
func (h *Host) closeStreams() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sweeps != nil {
		h.sweeps.Stop()
		h.sweeps = nil
	}
	for _, s := range h.streams {
		s.close()
	}
	clear(h.streams)
}

// isStream says whether a socket is one of TCP.
func isStream(fd int) bool {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	domain, failed := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	return errors.Join(err, failed) == nil && protocol == unix.IPPROTO_TCP && (domain == unix.AF_INET || domain == unix.AF_INET6)
}

// unsupported is an error for a socket that no ikernel can have.
func unsupported(why string) error { return fmt.Errorf("%s: %w", why, unix.EOPNOTSUPP) }

// attachStream has the ikernel get the messages of a TCP connection, or those of all connections that a listening socket will get.
func (k *Ikernel) attachStream(fd int) error {
	if k.coll.Programs["ik_stream"] == nil {
		return unsupported("this ikernel takes datagrams only: attach a UDP socket")
	}
	if k.metered != nil {
		return unsupported("the ikernel is of a namespace, whose share and quotas are kept for UDP sockets alone: create one without a namespace for TCP")
	}
	cookie, err := cookieOf(fd)
	if err != nil {
		return err
	}
	listens, err := fitsStream(fd)
	if err != nil {
		return err
	}
	h := k.host
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := k.serves(); err != nil {
		return err
	}
	h.sweepStreams()
	s := h.streams[cookie]
	switch {
	case s != nil && s.ikernel != nil:
		return errors.New("the socket has an ikernel: detach it first")
	case s == nil:
		if s, err = h.openStream(fd, cookie, listens); err != nil {
			return err
		}
	}
	return h.give(s, k, fd)
}

// fitsStream says whether a TCP socket listens, or why it cannot have an ikernel.
func fitsStream(fd int) (listens bool, err error) {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return false, fmt.Errorf("look at the socket: %w", err)
	}
	if ulp, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_ULP); err == nil && ulp != "" {
		return false, unsupported("the kernel itself reads the socket, for its protocol " + ulp + ": attach a connection that has no TCP_ULP")
	}
	switch info.State {
	case unix.BPF_TCP_LISTEN:
		return true, nil
	case unix.BPF_TCP_ESTABLISHED:
	default:
		return false, errors.New("the socket is not connected: connect it, or have it listen, first")
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return false, fmt.Errorf("look at the socket: %w", err)
	}
	if flags&unix.O_NONBLOCK == 0 {
		return false, unsupported("the socket blocks, and who waits for it might not be woken: set O_NONBLOCK first")
	}
	return false, nil
}

// openStream puts a socket where an ikernel can get its messages.
func (h *Host) openStream(fd int, cookie uint64, listens bool) (*stream, error) {
	if len(h.streams) == int(echoIkLimitIK_STREAMS) {
		return nil, fmt.Errorf("%d TCP sockets have ikernels, and no more can: close some", len(h.streams))
	}
	spec, err := loadStream()
	if err != nil {
		return nil, err
	}
	if !listens {
		forConnection(spec)
	}
	if listens {
		if has, err := hasFilter(fd); err != nil {
			return nil, err
		} else if has {
			return nil, unsupported("the socket has a filter, or that of a daemon which has ended: remove it by SO_DETACH_FILTER")
		}
	}
	s := &stream{listens: listens}
	if s.own, s.peer, err = endpoints(fd); err != nil {
		return nil, err
	}
	shared := ebpf.CollectionOptions{MapReplacements: map[string]*ebpf.Map{"ik_connections": h.connections}}
	if s.coll, err = ebpf.NewCollectionWithOptions(spec, shared); err != nil {
		var refused *ebpf.VerifierError
		if listens && errors.As(err, &refused) {
			return nil, unsupported("Linux " + kernel.Release() + " lets no ikernel have the connections of a socket that listens: attach each after it is accepted")
		}
		return nil, kernel.Fails("does not load what reads TCP sockets", err)
	}
	if err := h.enterStream(s, fd, cookie); err != nil {
		s.close()
		return nil, err
	}
	h.streams[cookie] = s
	return s, nil
}

// forConnection leaves out what only a socket that listens needs.
func forConnection(spec *ebpf.CollectionSpec) {
	spec.Maps["ik_streams"].MaxEntries = 1
	for _, name := range []string{"ik_filter", "ik_accept"} {
		delete(spec.Programs, name)
	}
	for _, name := range []string{"ik_accepting", "ik_accepted"} {
		delete(spec.Maps, name)
	}
}

func (h *Host) enterStream(s *stream, fd int, cookie uint64) error {
	streams := s.coll.Maps["ik_streams"]
	if err := link.RawAttachProgram(link.RawAttachProgramOptions{
		Target: streams.FD(), Program: s.coll.Programs["ik_enter"], Attach: ebpf.AttachSkSKBVerdict,
	}); err != nil {
		return kernel.Fails("does not let a program read TCP sockets", err)
	}
	if !s.listens {
		return entered(streams.Update(cookie, uint64(fd), ebpf.UpdateNoExist))
	}
	if err := entered(h.listeners.Update(cookie, uint64(fd), ebpf.UpdateNoExist)); err != nil {
		return err
	}
	// Each packet to the socket is seen from now on. Its connections inherit that.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_BPF, s.coll.Programs["ik_filter"].FD()); err != nil {
		return errors.Join(fmt.Errorf("watch the socket that listens: %w", err), h.listeners.Delete(cookie))
	}
	return nil
}

// entered explains what the kernel says of a socket that shall have an ikernel.
func entered(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("the socket has had an ikernel of a daemon that is gone, or is another program's, until it closes: %w", err)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return unsupported("the kernel reads the socket itself, or has closed it")
	}
	return kernel.Fails("does not let the socket have an ikernel", err)
}

// hasFilter says whether a socket has a filter. The kernel tells the length of one in classic BPF, and refuses to tell that of another.
func hasFilter(fd int) (bool, error) {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER) // SO_GET_FILTER
	switch {
	case err == nil:
		return n != 0, nil
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EINVAL):
		return true, nil
	}
	return false, fmt.Errorf("look for the socket's filter: %w", err)
}

// give has the ikernel get the messages of a stream from now on.
func (h *Host) give(s *stream, k *Ikernel, fd int) error {
	if err := s.coll.Maps["ik_live"].Put(uint32(0), k.coll.Programs["ik_stream"]); err != nil {
		return fmt.Errorf("hand the socket over: %w", err)
	}
	if s.listens {
		if err := s.coll.Maps["ik_accepting"].Put(uint32(0), s.coll.Programs["ik_accept"]); err != nil {
			return errors.Join(fmt.Errorf("hand the socket's connections over: %w", err), h.free(s))
		}
	}
	s.ikernel = k
	return nil
}

// free has the application get all messages of a stream.
func (h *Host) free(s *stream) error {
	s.ikernel = nil
	err := s.coll.Maps["ik_live"].Delete(uint32(0))
	if s.listens {
		if failed := s.coll.Maps["ik_accepting"].Delete(uint32(0)); !errors.Is(failed, ebpf.ErrKeyNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// sweepStreams forgets the sockets that are closed. The kernel has taken them out of their maps.
func (h *Host) sweepStreams() {
	for cookie, s := range h.streams {
		in, now := s.coll.Maps["ik_streams"], uint64(0)
		if s.listens {
			in = h.listeners
		}
		if in.Lookup(cookie, &now) != nil {
			s.close()
			delete(h.streams, cookie)
		}
	}
}

// detachStream has the application get all messages of a TCP socket again.
func (k *Ikernel) detachStream(cookie uint64) error {
	s := k.host.streams[cookie]
	if s == nil || s.ikernel != k {
		return errors.New("the socket is not attached to this ikernel: a connection that was accepted is detached with the socket that listens")
	}
	return k.host.free(s)
}

// leaveStreams has the applications get all messages of the ikernel's TCP sockets.
func (h *Host) leaveStreams(k *Ikernel) error {
	var errs []error
	for _, s := range h.streams {
		if s.ikernel == k {
			errs = append(errs, h.free(s))
		}
	}
	h.sweepStreams()
	h.sweepLater()
	return errors.Join(errs...)
}

// sweepInterval is how soon the host forgets a socket that closes when no ikernel has it.
const sweepInterval = time.Second

// sweepLater forgets the sockets that no ikernel has as they close. Those of an application that is killed do so before or after its ikernels end.
func (h *Host) sweepLater() {
	for _, s := range h.streams {
		if s.ikernel == nil && h.sweeps == nil {
			h.sweeps = time.AfterFunc(sweepInterval, h.sweepAgain)
			return
		}
	}
}

func (h *Host) sweepAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sweeps == nil {
		return // the host is closed
	}
	h.sweeps = nil
	h.sweepStreams()
	h.sweepLater()
}

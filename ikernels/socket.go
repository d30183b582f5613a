package ikernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/demux"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// addresses say which datagrams a socket gets.
type addresses struct {
	namespace uint64         // cookie of the network namespace
	own       netip.AddrPort // an unspecified address stands for all
	peer      netip.AddrPort // invalid: the socket is not connected
	only6     bool           // own is ::, and stands for addresses of IPv6 only
}

// A socket is one that is attached or detached at the moment.
type socket struct {
	addresses
	cookie uint64
	fd     int
	ns     netns.NsHandle
}

// look looks at a UDP socket.
func look(fd int) (_ *socket, err error) {
	s := &socket{ns: netns.None()}
	if s.fd, err = dup(fd); err != nil {
		return nil, err
	}
	if err := s.look(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *socket) look() error {
	protocol, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err != nil {
		return fmt.Errorf("look at the socket: %w", err)
	}
	domain, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return fmt.Errorf("look at the socket: %w", err)
	}
	if protocol == unix.IPPROTO_MPTCP {
		return unsupported("the socket speaks Multipath TCP: use TCP alone (in Go by ListenConfig.SetMultipathTCP)")
	}
	if protocol != unix.IPPROTO_UDP || domain != unix.AF_INET && domain != unix.AF_INET6 {
		return unsupported("only UDP and TCP sockets can have an ikernel")
	}
	if s.own, s.peer, err = endpoints(s.fd); err != nil {
		return err
	}
	if s.own.Port() == 0 {
		return errors.New("the socket has no port: bind it first")
	}
	if domain == unix.AF_INET6 {
		only, err := unix.GetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY)
		if err != nil {
			return fmt.Errorf("look at the socket: %w", err)
		}
		s.only6 = only != 0
	}
	if s.namespace, err = unix.GetsockoptUint64(s.fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err != nil {
		return fmt.Errorf("find the socket's network namespace: %w", err)
	}
	if s.cookie, err = cookieOf(s.fd); err != nil {
		return err
	}
	ns, err := unix.IoctlRetInt(s.fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("open the socket's network namespace: %w", err)
	}
	s.ns = netns.NsHandle(ns)
	return nil
}

// cookieOf is the kernel's number of a socket.
func cookieOf(fd int) (uint64, error) {
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("identify the socket: %w", err)
	}
	return cookie, nil
}

// endpoints are a socket's addresses; peer is invalid where it is not connected.
func endpoints(fd int) (own, peer netip.AddrPort, err error) {
	here, err := unix.Getsockname(fd)
	if err != nil {
		return own, peer, fmt.Errorf("look at the socket's address: %w", err)
	}
	there, err := unix.Getpeername(fd)
	if err != nil && !errors.Is(err, unix.ENOTCONN) {
		return own, peer, fmt.Errorf("look at the socket's peer: %w", err)
	}
	if err == nil {
		peer = addrPort(there)
	}
	return addrPort(here), peer, nil
}

func (s *socket) close() error {
	err := unix.Close(s.fd)
	if s.ns.IsOpen() {
		err = errors.Join(err, s.ns.Close())
	}
	return err
}

func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// inNamespace runs f on a thread of the socket's network namespace.
func (s *socket) inNamespace(f func() error) error { return veth.In(s.ns, f) }

// reach says by which interfaces and at which addresses the socket's peers reach it.
func (s *socket) reach() (interfaces []string, own []netip.Addr, err error) {
	err = s.inNamespace(func() error {
		listens := []netip.Addr{s.own.Addr()}
		if s.own.Addr() == netip.IPv6Unspecified() && !s.only6 {
			listens = append(listens, netip.IPv4Unspecified())
		}
		if interfaces, err = demux.Interfaces(listens); err != nil {
			return err
		}
		own, err = demux.Reached(interfaces, listens)
		return err
	})
	return interfaces, own, err
}

// flow is what datagrams to the socket at this address have in common.
func (s *socket) flow(own netip.Addr, ikernel uint32) echoIkFlow {
	f := echoIkFlow{Ikernel: ikernel, OwnPort: bigEndian(s.own.Port())}
	copy(f.OwnAddr[:], own.AsSlice())
	if s.own.Addr().IsUnspecified() {
		f.Wildcard = 1
	}
	if s.peer.IsValid() {
		copy(f.PeerAddr[:], s.peer.Addr().AsSlice())
		f.PeerPort = bigEndian(s.peer.Port())
	}
	return f
}

// bigEndian is a port as packets have it.
func bigEndian(port uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], port)
	return binary.NativeEndian.Uint16(b[:])
}

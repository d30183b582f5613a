package demux

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Find finds a server that listens by UDP, and does what Reach does.
func (s *Server) Find() ([]netip.Addr, error) {
	listens, err := locate(s.Port)
	if err != nil {
		return nil, err
	}
	return s.Reach(listens)
}

// locate returns at which addresses of the thread's network namespace servers listen by UDP.
func locate(port uint16) (listens []netip.Addr, err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		sockets, err := netlink.SocketDiagUDP(family)
		if err != nil {
			return nil, fmt.Errorf("list the sockets of the network namespace: %w", err)
		}
		for _, s := range sockets {
			if s.ID.SourcePort != port || s.ID.DestinationPort != 0 { // a connected one is a client's
				continue
			}
			a, ok := netip.AddrFromSlice(s.ID.Source)
			if !ok {
				continue
			}
			listens = append(listens, a.Unmap())
			if a == netip.IPv6Unspecified() { // If this socket is for IPv6 only, no socket takes what comes by IPv4, and the ikernel leaves it alone.
				listens = append(listens, netip.IPv4Unspecified())
			}
		}
	}
	if len(listens) == 0 {
		return nil, fmt.Errorf("no server listens by UDP at port %d of the network namespace: start it there", port)
	}
	slices.SortFunc(listens, netip.Addr.Compare)
	return slices.Compact(listens), nil
}

package ikernels

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A path is how a connected socket's datagrams get to its peer.
type path struct {
	index     int // of the interface
	mtu       int
	own, next net.HardwareAddr // the interface's, and that of the peer or of its gateway
}

const (
	ethernetLen = 14
	ipv4Len     = 20
	ipv6Len     = 40
	udpLen      = 8
)

// findPath finds it in the thread's network namespace. It refuses a peer to which XDP cannot send, as the kernel would have to ask or to choose.
func (a addresses) findPath() (p path, err error) {
	if !a.peer.IsValid() || a.own.Addr().IsUnspecified() {
		return p, errors.New("the socket is not connected: connect it to the peer that is to get datagrams")
	}
	link, next, mtu, err := a.route()
	if err != nil {
		return p, fmt.Errorf("find the way to %s: %w", a.peer.Addr(), err)
	}
	p = path{index: link.Attrs().Index, mtu: link.Attrs().MTU, own: link.Attrs().HardwareAddr}
	if mtu > 0 {
		p.mtu = min(p.mtu, mtu)
	}
	if len(p.own) != 6 {
		return p, fmt.Errorf("interface %s, which leads to %s, is not Ethernet", link.Attrs().Name, a.peer.Addr())
	}
	sends, err := sendsFrames(p.index)
	if err != nil {
		return p, fmt.Errorf("ask what interface %s can do: %w", link.Attrs().Name, err)
	}
	if !sends {
		return p, fmt.Errorf("interface %s, which leads to %s, sends nothing for XDP (no NDO_XMIT in its xdp-features): its driver cannot, "+
			"or has it off. For veth, use `ethtool -K PEER gro on` at its other end", link.Attrs().Name, a.peer.Addr())
	}
	p.next, err = neighbour(link, next)
	return p, err
}

// route says by which interface the peer is reached, who comes next, and how long packets may be; 0: as long as the interface has it.
func (a addresses) route() (link netlink.Link, next netip.Addr, mtu int, err error) {
	peer := a.peer.Addr()
	if peer.IsMulticast() || peer.IsLinkLocalUnicast() {
		return nil, next, 0, errors.New("it is a multicast or a link-local address: use another")
	}
	routes, err := netlink.RouteGetWithOptions(peer.AsSlice(), &netlink.RouteGetOptions{SrcAddr: a.own.Addr().AsSlice(), FIBMatch: true})
	if err != nil {
		return nil, next, 0, err
	}
	if len(routes) != 1 || len(routes[0].MultiPath) > 0 || routes[0].Via != nil {
		return nil, next, 0, errors.New("there are several ways, or one by another protocol's gateway: give it a route of its own, by one interface")
	}
	r := routes[0]
	if r.Type != unix.RTN_UNICAST {
		return nil, next, 0, errors.New("it is an address of this machine, or one that is not reached: use that of a peer")
	}
	if next = peer; r.Gw != nil {
		gateway, _ := netip.AddrFromSlice(r.Gw)
		next = gateway.Unmap()
	}
	link, err = netlink.LinkByIndex(r.LinkIndex)
	return link, next, r.MTU, err
}

// neighbour is the Ethernet address of an address on a link.
func neighbour(link netlink.Link, of netip.Addr) (net.HardwareAddr, error) {
	family := netlink.FAMILY_V4
	if of.Is6() {
		family = netlink.FAMILY_V6
	}
	all, err := netlink.NeighList(link.Attrs().Index, family)
	if err != nil {
		return nil, fmt.Errorf("list the neighbours of interface %s: %w", link.Attrs().Name, err)
	}
	for i := range all {
		n := &all[i]
		known := n.State&(netlink.NUD_PERMANENT|netlink.NUD_REACHABLE|netlink.NUD_STALE|netlink.NUD_DELAY|netlink.NUD_PROBE) != 0
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == of && known && len(n.HardwareAddr) == 6 {
			return n.HardwareAddr, nil
		}
	}
	return nil, fmt.Errorf("the Ethernet address of %s on interface %s is not known: send a datagram there first, or use `ip neighbour add`", of, link.Attrs().Name)
}

// Of linux/netdev.h, which the packages for netlink lack.
const (
	netdevFamily      = "netdev"
	netdevDevGet      = 1
	netdevIfindex     = 1
	netdevXDPFeatures = 3
	netdevNDOXmit     = 1 << 2
)

// sendsFrames says whether an interface of the thread's namespace has the function by which XDP sends.
func sendsFrames(index int) (bool, error) {
	family, err := netlink.GenlFamilyGet(netdevFamily)
	if err != nil {
		return false, fmt.Errorf("find netlink's family %s: %w", netdevFamily, err)
	}
	request := nl.NewNetlinkRequest(int(family.ID), 0)
	// nl.Genlmsg leaves the header's last two bytes to chance, and the kernel wants zeros.
	request.AddRawData(append([]byte{netdevDevGet, 1, 0, 0}, nl.NewRtAttr(netdevIfindex, nl.Uint32Attr(uint32(index))).Serialize()...))
	replies, err := request.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return false, err
	}
	for _, reply := range replies {
		attributes, err := nl.ParseRouteAttr(reply[nl.SizeofGenlmsg:])
		if err != nil {
			return false, err
		}
		for _, a := range attributes {
			if a.Attr.Type == netdevXDPFeatures && len(a.Value) == 8 {
				return binary.NativeEndian.Uint64(a.Value)&netdevNDOXmit != 0, nil
			}
		}
	}
	return false, nil
}

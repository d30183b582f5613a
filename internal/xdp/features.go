package xdp

import (
	"encoding/binary"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Of linux/netdev.h, which the packages for netlink lack.
const (
	netdevFamily      = "netdev"
	netdevDevGet      = 1
	netdevIfindex     = 1
	netdevXDPFeatures = 3
	netdevNDOXmit     = 1 << 2
)

// Sends says whether an interface of the thread's namespace has the function by which XDP sends (NDO_XMIT of its xdp-features). A veth has it when its
// other end has gro on, or an XDP program in native mode.
func Sends(index int) (bool, error) {
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

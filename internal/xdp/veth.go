package xdp

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// isMute says whether an interface of the thread's namespace is a veth that loses what a native XDP program sends by XDP_TX. The other end fetches
// that only while it has a native XDP program, too; gro is not enough (veth_xdp_flush() in Linux's drivers/net/veth.c).
func isMute(index int) bool {
	l, err := netlink.LinkByIndex(index)
	if err != nil || l.Type() != "veth" {
		return false
	}
	peer, err := otherEnd(l.Attrs())
	if err != nil {
		return true // generic mode always sends
	}
	return peer.Xdp == nil || !peer.Xdp.Attached || peer.Xdp.AttachMode == nl.XDP_ATTACHED_SKB
}

// otherEnd looks at the other end of a pair of interfaces, which may be in another network namespace.
func otherEnd(of *netlink.LinkAttrs) (*netlink.LinkAttrs, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(of.ParentIndex)
	request.AddData(message)
	if of.NetNsID >= 0 {
		request.AddData(nl.NewRtAttr(unix.IFLA_TARGET_NETNSID, nl.Uint32Attr(uint32(of.NetNsID))))
	}
	replies, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if err == nil && len(replies) != 1 {
		err = fmt.Errorf("there are %d", len(replies))
	}
	if err != nil {
		return nil, fmt.Errorf("look at the other end of %s: %w", of.Name, err)
	}
	l, err := netlink.LinkDeserialize(nil, replies[0])
	if err != nil {
		return nil, fmt.Errorf("look at the other end of %s: %w", of.Name, err)
	}
	return l.Attrs(), nil
}

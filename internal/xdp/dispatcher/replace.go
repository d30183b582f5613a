package dispatcher

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/xdp"
)

// expectedFD is IFLA_XDP_EXPECTED_FD of linux/if_link.h.
const expectedFD = 8

// replace puts a dispatcher, or none, in the place of the set's, at once: each packet meets one of them. EEXIST says that the set's is no longer attached.
func (s *set) replace(next *ebpf.Program) error {
	fd := -1
	if next != nil {
		fd = next.FD()
	}
	flags := uint32(unix.XDP_FLAGS_REPLACE)
	if s.mode == xdp.ModeGeneric {
		flags |= unix.XDP_FLAGS_SKB_MODE
	} else {
		flags |= unix.XDP_FLAGS_DRV_MODE
	}
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(s.index)
	request.AddData(message)
	attributes := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
	attributes.AddRtAttr(nl.IFLA_XDP_FD, nl.Uint32Attr(uint32(fd)))
	attributes.AddRtAttr(nl.IFLA_XDP_FLAGS, nl.Uint32Attr(flags))
	attributes.AddRtAttr(expectedFD, nl.Uint32Attr(uint32(s.prog.FD())))
	request.AddData(attributes)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the dispatcher of XDP programs (ID %d) is attached by a link of another program's, which keeps all others out: "+
			"end that, and load its programs by `xdp-loader load`: %w", s.id, err)
	}
	if err != nil {
		return fmt.Errorf("replace the dispatcher of XDP programs (ID %d): %w", s.id, err)
	}
	return nil
}

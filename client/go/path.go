package lambdanic

import (
	"errors"
	"net"
	"net/netip"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/api"
)

// A path is how much message a packet can carry to the server. NICs accept no IP fragments, so packets leave with "don't
// fragment", and the kernel reports the path MTU (RFC 1191, RFC 8201).
type path struct {
	ipv4   bool
	single atomic.Int32 // bytes of message
}

// leastMTU is the MTU that is assumed where the kernel knows none. It is far below IPv6's minimum (RFC 8200 section 5).
const leastMTU = 576

// The classes of packets (RFC 4594): short messages and the last packets of long ones overtake the other packets of long ones, where
// the network makes a difference. A NIC answers in the class of the packet that it answers.
const (
	classShort = 18 << 2 // AF21, low-latency data
	classBulk  = 10 << 2 // AF11, high-throughput data
)

// open readies a connected socket, and measures it for the first time.
func (p *path) open(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	p.ipv4 = isIPv4(conn.RemoteAddr().(*net.UDPAddr).AddrPort())
	return raw.Control(func(fd uintptr) {
		level, option, do, class := unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO, unix.IPV6_TCLASS
		if p.ipv4 {
			level, option, do, class = unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO, unix.IP_TOS
		}
		_ = unix.SetsockoptInt(int(fd), level, class, classShort) // a failure only costs speed
		_ = unix.SetsockoptInt(int(fd), level, option, do)        // otherwise the kernel fragments packets, and they are lost
		p.measure(int(fd))
	})
}

func isIPv4(to netip.AddrPort) bool { return to.Addr().Unmap().Is4() }

// measure asks the kernel how long a packet may be, and reports whether that is less than it was.
func (p *path) measure(fd int) bool {
	level, option, headers := unix.IPPROTO_IPV6, unix.IPV6_MTU, 40+8+api.RPCHeaderLen
	if p.ipv4 {
		level, option, headers = unix.IPPROTO_IP, unix.IP_MTU, 20+8+api.RPCHeaderLen
	}
	mtu, err := unix.GetsockoptInt(fd, level, option)
	if err != nil {
		mtu = 1500
	}
	single := int32(min(max(mtu, leastMTU), 1500) - headers)
	return p.single.Swap(single) > single
}

// room is how many bytes of message a single packet holds, fragment how many each packet of several.
func (p *path) room() int     { return int(p.single.Load()) }
func (p *path) fragment() int { return min(api.RPCFragment, p.room()&^15) }

// tooLong says that a packet was longer than the path MTU.
func tooLong(err error) bool { return errors.Is(err, unix.EMSGSIZE) }

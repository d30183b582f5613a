// Package veth makes veth pairs whose far end lives in a named network namespace: for virtual NICs and for
// measurements.
package veth

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/ethtool"
)

// Side describes one end of a pair that is to be made.
type Side struct {
	Name  string
	Addrs []netip.Prefix
}

// End is one end of an existing pair.
type End struct {
	Side
	Index int
	MAC   net.HardwareAddr
}

// New makes a pair whose far end is in ns. Both ends are up, have their addresses, and know the other's MAC address: neither
// bpf_fib_lookup() nor a measurement can wait for ARP. An IPv6 address is left out where the kernel has no IPv6 for it.
//
// Where queues is 0 there are as many each way as CPUs: a CPU that sends has a ring of its own, and receive queues meet the
// peer's transmit queues (veth drops what goes to a queue that is not there).
func New(near, far Side, ns netns.NsHandle, queues int) (n, f End, err error) {
	if queues == 0 {
		queues = runtime.NumCPU()
	}
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: near.Name, NumTxQueues: queues, NumRxQueues: queues, TxQLen: 1000})
	pair.PeerName, pair.PeerNamespace = far.Name, netlink.NsFd(ns)
	pair.PeerNumTxQueues, pair.PeerNumRxQueues = uint32(queues), uint32(queues)
	if err := netlink.LinkAdd(pair); err != nil {
		return n, f, fmt.Errorf("make veth pair %s: %w", near.Name, err)
	}
	// XDP answers packets of local sockets before anybody finished their checksums.
	if err := ethtool.ChecksumOffloadOff(near.Name); err != nil {
		return n, f, err
	}
	if err := OwnQueues("/sys", near.Name, queues); err != nil {
		return n, f, err
	}
	if n, err = near.setUp(); err != nil {
		return n, f, err
	}
	err = In(ns, func() (err error) {
		if f, err = far.setUp(); err != nil {
			return err
		}
		return f.learn(n)
	})
	return n, f, errors.Join(err, n.learn(f))
}

// Remove takes an interface away, and with it its other end. A missing interface is no error.
func Remove(name string) error {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove interface %s: %w", name, err)
	}
	return nil
}

// setUp gives the interface its addresses, sets it up and learns what the kernel chose for it.
func (s Side) setUp() (End, error) {
	l, err := netlink.LinkByName(s.Name)
	if err != nil {
		return End{}, fmt.Errorf("find interface %s: %w", s.Name, err)
	}
	for _, a := range s.Addrs {
		ip := &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}
		// Nobody else is on the link: duplicate address detection would only delay the first packet.
		err := netlink.AddrAdd(l, &netlink.Addr{IPNet: ip, Flags: unix.IFA_F_NODAD})
		if err != nil && !(a.Addr().Is6() && errors.Is(err, unix.EACCES)) {
			return End{}, fmt.Errorf("give %s the address %s: %w", s.Name, a, err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return End{}, fmt.Errorf("set %s up: %w", s.Name, err)
	}
	return End{s, l.Attrs().Index, l.Attrs().HardwareAddr}, nil
}

// learn makes the other end's addresses permanent neighbours of this one.
func (e End) learn(other End) error {
	var errs []error
	for _, a := range other.Addrs {
		errs = append(errs, netlink.NeighSet(&netlink.Neigh{
			LinkIndex: e.Index, IP: a.Addr().AsSlice(), HardwareAddr: other.MAC, State: netlink.NUD_PERMANENT,
		}))
	}
	return errors.Join(errs...)
}

// Addresses lists the addresses of an interface, of all where it is nil. It asks again where the list changed meanwhile
// (NLM_F_DUMP_INTR, Documentation/userspace-api/netlink/intro.rst).
func Addresses(l netlink.Link, family int) (addrs []netlink.Addr, err error) {
	for {
		addrs, err = netlink.AddrList(l, family)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return addrs, err
		}
	}
}

// FreeSubnet finds a /30 of an IPv4 range that no interface of this namespace uses, and returns its number in the range.
// It begins at start, so that owners who choose at once do not choose the same.
func FreeSubnet(within netip.Prefix, start uint32) (n int, err error) {
	addrs, err := Addresses(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, fmt.Errorf("list addresses: %w", err)
	}
	used := map[netip.Addr]bool{}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			used[netip.PrefixFrom(ip, 30).Masked().Addr()] = true
		}
	}
	subnets := 1 << (30 - within.Bits())
	for i := range subnets {
		n := (int(start)%subnets + i) % subnets
		if !used[Host(within, n, 0).Addr()] {
			return n, nil
		}
	}
	return 0, fmt.Errorf("all of %s is in use: remove an interface that uses it", within)
}

// Host is an address in the nth /30 of an IPv4 range.
func Host(within netip.Prefix, n, host int) netip.Prefix {
	b := within.Masked().Addr().As4()
	for i, v := 3, n<<2+host; i >= 0; i, v = i-1, v>>8 {
		b[i] |= byte(v)
	}
	return netip.PrefixFrom(netip.AddrFrom4(b), 30)
}

// OwnQueues gives each CPU a transmit queue of its own, and so the ring that it feeds (XPS: Documentation/networking/scaling.rst).
// Otherwise a hash of the flow chooses, and the packets of two CPUs often wait for one ring while the other is idle.
func OwnQueues(sys, name string, queues int) error {
	for q := range queues {
		var mask big.Int
		for cpu := q; cpu < runtime.NumCPU(); cpu += queues {
			mask.SetBit(&mask, cpu, 1)
		}
		file := filepath.Join(sys, "class/net", name, fmt.Sprintf("queues/tx-%d/xps_cpus", q))
		err := os.WriteFile(file, []byte(cpuMask(&mask)), 0)
		if errors.Is(err, os.ErrNotExist) {
			return nil // a single queue, or a kernel without XPS
		}
		if err != nil {
			return fmt.Errorf("choose the CPUs of a transmit queue: %w", err)
		}
	}
	return nil
}

// cpuMask writes a set of CPUs as sysfs wants it: groups of 32 bits, with commas between them.
func cpuMask(set *big.Int) string {
	digits := set.Text(16)
	var groups []string
	for len(digits) > 8 {
		groups = append([]string{digits[len(digits)-8:]}, groups...)
		digits = digits[:len(digits)-8]
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}

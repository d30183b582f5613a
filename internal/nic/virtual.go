package nic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// A virtual SmartNIC is a veth pair. Its far end lives in a named namespace of its own, carries the NIC program and has its
// own address, as a SmartNIC has in E3 (section 3.2). A named namespace, since a pinned link survives in no other.
type virtual struct {
	namespace string
	host, nic string // the pair's ends
	subnet    int    // which /30 of 10.237.0.0/16 and /64 of fd6c:6e69:63::/48
}

func (v virtual) hostAddr() netip.Addr { return v.addr4(1) }
func (v virtual) nicAddr() netip.Addr  { return v.addr4(2) }
func (v virtual) hostAddr6() netip.Addr {
	return v.addr6(1)
}
func (v virtual) nicAddr6() netip.Addr { return v.addr6(2) }

func (v virtual) addr4(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 237, byte(v.subnet >> 6), byte(v.subnet<<2 + host)})
}

func (v virtual) addr6(host int) netip.Addr {
	a := [16]byte{0xfd, 0x6c, 0x6e, 0x69, 0x00, 0x63, byte(v.subnet >> 8), byte(v.subnet)}
	a[15] = byte(host)
	return netip.AddrFrom16(a)
}

// virtualNames derives the names of an instance's parts; interface names have at most 15 bytes.
func virtualNames(instance string) virtual {
	short := instance
	if len(short) > 10 {
		short = short[:5] + fmt.Sprintf("%05x", fnv32(instance)&0xfffff)
	}
	// The far end is alone in its namespace; its name is the instance's all the same, as kernel threads are called by it.
	return virtual{namespace: "lambdanic-" + instance, host: "lnic-" + short, nic: "nic-" + short}
}

// create makes namespace, pair and addresses. What of them was left from an earlier attempt must be gone.
func (v *virtual) create() error {
	subnet, err := freeSubnet(fnv32(v.namespace))
	if err != nil {
		return err
	}
	v.subnet = subnet
	ns, err := newNamespace(v.namespace)
	if err != nil {
		return fmt.Errorf("make network namespace %s: %w", v.namespace, err)
	}
	defer ns.Close()
	// As many queues each way as CPUs: a CPU that sends has a ring of its own, and receive queues meet the peer's
	// transmit queues (veth drops what goes to a queue that is not there).
	queues := runtime.NumCPU()
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: v.host, NumTxQueues: queues, NumRxQueues: queues, TxQLen: 1000})
	veth.PeerName, veth.PeerNamespace = v.nic, netlink.NsFd(ns)
	veth.PeerNumTxQueues, veth.PeerNumRxQueues = uint32(queues), uint32(queues)
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("make veth pair %s: %w", v.host, err)
	}
	// XDP answers packets of local sockets before anybody finished their checksums.
	if err := checksumOffloadOff(v.host); err != nil {
		return err
	}
	host, err := setUp(v.host, v.hostAddr(), v.hostAddr6())
	if err != nil {
		return err
	}
	var nic end
	err = inNamespace(ns, func() error {
		if nic, err = setUp(v.nic, v.nicAddr(), v.nicAddr6()); err != nil {
			return err
		}
		if err := v.route(nic); err != nil {
			return err
		}
		return errors.Join(learn(nic, host), enableForwarding(v.nic))
	})
	return errors.Join(err, learn(host, nic))
}

// route sends all that is not on the link to the host, so that services beyond it can be called.
func (v *virtual) route(nic end) error {
	for _, gw := range []netip.Addr{v.hostAddr(), v.hostAddr6()} {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: nic.index, Gw: gw.AsSlice()}); err != nil {
			return fmt.Errorf("route the NIC's traffic by %s: %w", gw, err)
		}
	}
	return nil
}

// remove takes away whatever of the virtual NIC is there.
func (v virtual) remove() error {
	var errs []error
	if l, err := netlink.LinkByName(v.host); err == nil {
		if err := netlink.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) {
			errs = append(errs, fmt.Errorf("remove interface %s: %w", v.host, err))
		}
	} else if !errors.As(err, new(netlink.LinkNotFoundError)) {
		errs = append(errs, fmt.Errorf("look for interface %s: %w", v.host, err))
	}
	if err := netns.DeleteNamed(v.namespace); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, fmt.Errorf("remove network namespace %s: %w", v.namespace, err))
	}
	return errors.Join(errs...)
}

// end is one end of the pair.
type end struct {
	index int
	mac   net.HardwareAddr
	addrs []netip.Addr
}

func setUp(name string, addr4, addr6 netip.Addr) (end, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return end{}, fmt.Errorf("find interface %s: %w", name, err)
	}
	e := end{index: l.Attrs().Index, mac: l.Attrs().HardwareAddr, addrs: []netip.Addr{addr4, addr6}}
	for _, a := range e.addrs {
		bits := 30
		if a.Is6() {
			bits = 64
		}
		// Nobody else is on the link: duplicate address detection would only delay the first packet.
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}, Flags: unix.IFA_F_NODAD}
		if err := netlink.AddrAdd(l, addr); err != nil && !(a.Is6() && errors.Is(err, unix.EACCES)) {
			return end{}, fmt.Errorf("give %s the address %s: %w", name, a, err)
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return end{}, fmt.Errorf("set %s up: %w", name, err)
	}
	return e, nil
}

// learn makes the far end's addresses permanent neighbours: bpf_fib_lookup() cannot wait for ARP.
func learn(at, of end) error {
	var errs []error
	for _, a := range of.addrs {
		errs = append(errs, netlink.NeighSet(&netlink.Neigh{
			LinkIndex: at.index, IP: a.AsSlice(), HardwareAddr: of.mac, State: netlink.NUD_PERMANENT,
		}))
	}
	return errors.Join(errs...)
}

// enableForwarding lets bpf_fib_lookup() answer: it refuses on an interface that does not forward (net/core/filter.c).
func enableForwarding(iface string) error {
	var errs []error
	for _, family := range []string{"ipv4", "ipv6"} {
		path := filepath.Join("/proc/sys/net", family, "conf", iface, "forwarding")
		if err := os.WriteFile(path, []byte("1"), 0); err != nil && !(family == "ipv6" && errors.Is(err, os.ErrNotExist)) {
			errs = append(errs, fmt.Errorf("enable forwarding: %w", err))
		}
	}
	return errors.Join(errs...)
}

// freeSubnet finds a /30 of 10.237.0.0/16 that no interface of this namespace uses, beginning at a place of the instance's
// own so that two instances which start at once choose different ones.
func freeSubnet(start uint32) (int, error) {
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return 0, fmt.Errorf("list addresses: %w", err)
	}
	used := map[netip.Addr]bool{}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			used[netip.PrefixFrom(ip, 30).Masked().Addr()] = true
		}
	}
	const subnets = 1 << 14
	for i := range subnets {
		v := virtual{subnet: (int(start%subnets) + i) % subnets}
		if !used[v.addr4(0)] {
			return v.subnet, nil
		}
	}
	return 0, errors.New("all of 10.237.0.0/16 is in use: remove an interface that uses it")
}

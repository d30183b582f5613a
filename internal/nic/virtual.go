package nic

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// A virtual SmartNIC is a veth pair. Its far end lives in a namespace of its own, carries the NIC program and has its own
// address, as a SmartNIC has in E3 (section 3.2). The namespace is named, since a pinned link survives only in a named one.
type virtual struct {
	namespace string
	host, nic string // the pair's ends
	subnet    int    // its number in range4 and range6
}

// The ranges from which each virtual NIC takes its subnets.
var (
	range4 = netip.MustParsePrefix("10.237.0.0/16")
	range6 = netip.MustParsePrefix("fd6c:6e69:63::/48")
)

func (v virtual) hostAddr() netip.Addr  { return v.addr4(1).Addr() }
func (v virtual) nicAddr() netip.Addr   { return v.addr4(2).Addr() }
func (v virtual) hostAddr6() netip.Addr { return v.addr6(1).Addr() }
func (v virtual) nicAddr6() netip.Addr  { return v.addr6(2).Addr() }

// reach is how the NIC's end is reached; more are additional addresses.
func (v virtual) reach(more []netip.Addr) module.Reach {
	own := []netip.Addr{v.nicAddr(), v.nicAddr6()}
	return module.Reach{Addr: own[0], Addr6: own[1], Addrs: append(own, more...), HostAddr: v.hostAddr()}
}

func (v virtual) addr4(host int) netip.Prefix { return veth.Host(range4, v.subnet, host) }

func (v virtual) addr6(host int) netip.Prefix {
	a := range6.Addr().As16()
	a[6], a[7], a[15] = byte(v.subnet>>8), byte(v.subnet), byte(host)
	return netip.PrefixFrom(netip.AddrFrom16(a), 64)
}

// virtualNames derives namespace and interface names from an instance's; interface names have at most 15 bytes.
func virtualNames(instance string) virtual {
	short := instance
	if len(short) > 10 {
		short = short[:5] + fmt.Sprintf("%05x", fnv32(instance)&0xfffff)
	}
	// The far end is alone in its namespace, but still named after the instance, since kernel threads are named after it.
	return virtual{namespace: "lambdanic-" + instance, host: "lnic-" + short, nic: "nic-" + short}
}

// create makes namespace, pair and addresses. Remains of an earlier attempt must be gone. Two instances that start at once begin to
// look for subnets at different places.
func (v *virtual) create() error {
	subnet, err := veth.FreeSubnet(range4, fnv32(v.namespace))
	if err != nil {
		return err
	}
	v.subnet = subnet
	ns, err := veth.NewNamespace(v.namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	_, nic, err := veth.New(
		veth.Side{Name: v.host, Addrs: []netip.Prefix{v.addr4(1), v.addr6(1)}},
		veth.Side{Name: v.nic, Addrs: []netip.Prefix{v.addr4(2), v.addr6(2)}}, ns, 0)
	if err != nil {
		return err
	}
	return veth.In(ns, func() error {
		if err := v.route(nic.Index); err != nil {
			return err
		}
		return enableForwarding(v.nic)
	})
}

// route sends everything that is not on the link to the host, so that services beyond it can be called.
func (v *virtual) route(nic int) error {
	for _, gw := range []netip.Addr{v.hostAddr(), v.hostAddr6()} {
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: nic, Gw: gw.AsSlice()}); err != nil {
			return fmt.Errorf("route the NIC's traffic by %s: %w", gw, err)
		}
	}
	return nil
}

// remove takes away whatever of the virtual NIC is there.
func (v virtual) remove() error {
	return errors.Join(veth.Remove(v.host), veth.RemoveNamespace(v.namespace))
}

// enableForwarding lets bpf_fib_lookup() work: it fails on an interface that does not forward (net/core/filter.c).
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

func fnv32(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

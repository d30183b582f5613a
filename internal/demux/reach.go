package demux

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"

	"github.com/lambdanic/lambdanic/internal/veth"
)

// Interfaces names the interfaces by which clients reach a server that listens at these addresses. It leaves out loopback
// unless there is no other, for every packet of the machine to itself would pass the NIC program there.
func Interfaces(listens []netip.Addr) ([]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	var names, loopback []string
	for _, i := range interfaces {
		own, err := Addresses(&i)
		if err != nil {
			return nil, err
		}
		switch {
		case i.Flags&net.FlagUp == 0 || !slices.ContainsFunc(own, func(a netip.Addr) bool { return isAmong(listens, a) }):
		case i.Flags&net.FlagLoopback != 0:
			loopback = append(loopback, i.Name)
		case len(i.HardwareAddr) == etherAddressSize:
			names = append(names, i.Name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	if len(loopback) > 0 {
		return loopback, nil
	}
	return nil, errors.New("no Ethernet interface that is up has an address at which the server listens: name one with --interface")
}

// isAmong says whether a server that listens at these addresses is reached at a. An unspecified one stands for all of its family.
func isAmong(listens []netip.Addr, a netip.Addr) bool {
	return slices.ContainsFunc(listens, func(l netip.Addr) bool { return l == a.WithZone("") || l.IsUnspecified() && l.Is4() == a.Is4() })
}

// Reached lists the addresses at which clients by these interfaces reach a server that listens at these. What comes by lo is for any address.
func Reached(names []string, listens []netip.Addr) (all []netip.Addr, err error) {
	for _, a := range listens {
		if !a.IsUnspecified() {
			all = append(all, a)
		}
	}
	if len(all) == len(listens) {
		return all, nil
	}
	for _, name := range names {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return nil, fmt.Errorf("find interface %s: %w", name, err)
		}
		if i.Flags&net.FlagLoopback != 0 {
			i = nil
		}
		own, err := Addresses(i)
		if err != nil {
			return nil, err
		}
		for _, a := range own {
			if isAmong(listens, a) && !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all, nil
}

// etherAddressSize is the size of an address of Ethernet, whose frames the NIC program reads. Tunnels of IP have others or none.
const etherAddressSize = 6

// Addresses are those of an interface, or of all where it is nil. A link-local one has the interface's number with it.
func Addresses(i *net.Interface) (all []netip.Addr, err error) {
	var l netlink.Link
	if i != nil {
		l = &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: i.Index, Name: i.Name}}
	}
	list, err := veth.Addresses(l, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of the network namespace: %w", err)
	}
	for _, a := range list {
		ip, ok := netip.AddrFromSlice(a.IP)
		if !ok {
			continue
		}
		if ip = ip.Unmap(); ip.Is6() && ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(strconv.Itoa(a.LinkIndex))
		}
		all = append(all, ip)
	}
	return all, nil
}

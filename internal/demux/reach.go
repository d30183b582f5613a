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

// Interfaces names the interfaces by which clients reach a server that listens at these addresses; none are all. It leaves out loopback
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
		at := func(a netip.Addr) bool { return len(listens) == 0 || slices.Contains(listens, a.WithZone("")) }
		switch {
		case i.Flags&net.FlagUp == 0 || !slices.ContainsFunc(own, at):
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

// Reached lists the addresses at which clients by these interfaces reach a server that listens at all. What comes by lo is for any address.
func Reached(names []string) (all []netip.Addr, err error) {
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
		all = append(all, own...)
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

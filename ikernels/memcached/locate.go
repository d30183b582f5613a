package memcached

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// locate returns an address at which a server accepts TCP connections to the port, in the calling thread's network namespace.
func locate(port uint16) (netip.AddrPort, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("list the interfaces: %w", err)
	}
	candidates := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	for _, i := range interfaces {
		addrs, err := addressesOf(&i)
		if err != nil {
			return netip.AddrPort{}, err
		}
		candidates = append(candidates, addrs...)
	}
	var failed error
	for _, a := range candidates {
		server := netip.AddrPortFrom(a, port)
		p, err := dialProbe(server)
		if err == nil {
			return server, p.close()
		}
		failed = cmp.Or(failed, err)
	}
	return netip.AddrPort{}, fmt.Errorf("no server is found at port %d of the network namespace: %w: start it there, and set lo up", port, failed)
}

// servedInterfaces names the interfaces by which clients reach a server that listens at these addresses; none are all. It leaves out loopback
// unless there is no other, for every packet of the machine to itself would pass the NIC program there.
func servedInterfaces(listens []netip.Addr) ([]string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the interfaces: %w", err)
	}
	var names, loopback []string
	for _, i := range interfaces {
		addrs, err := addressesOf(&i)
		if err != nil {
			return nil, err
		}
		at := func(a netip.Addr) bool { return len(listens) == 0 || slices.Contains(listens, a.WithZone("")) }
		switch {
		case i.Flags&net.FlagUp == 0 || !slices.ContainsFunc(addrs, at):
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

// etherAddressSize is the size of an address of Ethernet, whose frames the NIC program reads. Tunnels of IP have others or none.
const etherAddressSize = 6

func addressesOf(i *net.Interface) (addrs []netip.Addr, err error) {
	list, err := i.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list the addresses of %s: %w", i.Name, err)
	}
	for _, a := range list {
		ip, ok := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if !ok {
			continue
		}
		if ip = ip.Unmap(); ip.Is6() && ip.IsLinkLocalUnicast() {
			ip = ip.WithZone(i.Name)
		}
		addrs = append(addrs, ip)
	}
	return addrs, nil
}

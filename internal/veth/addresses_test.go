package veth

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
)

// Addresses that come and go elsewhere do not keep anybody from a list.
func TestAddressesWhileTheyChange(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: it makes interfaces")
	}
	name := fmt.Sprintf("ln%da", os.Getpid())
	pair := netlink.NewVeth(netlink.LinkAttrs{Name: name})
	pair.PeerName = name + "p"
	if err := netlink.LinkAdd(pair); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Remove(name) })
	for i := range 200 { // more than one message of a dump
		addr, err := netlink.ParseAddr(netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}), 32).String())
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.AddrAdd(pair, addr); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		addr, _ := netlink.ParseAddr("198.51.100.201/32")
		for {
			select {
			case <-done:
				return
			default:
				_ = netlink.AddrAdd(pair, addr)
				_ = netlink.AddrDel(pair, addr)
			}
		}
	}()
	for range 300 {
		if list, err := Addresses(pair, netlink.FAMILY_V4); err != nil || len(list) < 200 {
			t.Errorf("%d addresses (%v)", len(list), err)
			break
		}
	}
	close(done)
	<-stopped
}

package demux

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// A server that listens at all addresses of one family is not reached at those of the other: another one may be there.
func TestReachedByFamily(t *testing.T) {
	in(t, func() error {
		l := netlink.NewVeth(netlink.LinkAttrs{Name: "eth"})
		l.PeerName = "other"
		if err := netlink.LinkAdd(l); err != nil {
			return err
		}
		for _, a := range []string{"198.18.3.1/24", "2001:db8:3::1/64"} {
			addr, err := netlink.ParseAddr(a)
			if err != nil {
				return err
			}
			addr.Flags = 0x80 // IFA_F_NODAD
			if err := netlink.AddrAdd(l, addr); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
		for listens, want := range map[string]string{
			"0.0.0.0":               "198.18.3.1",
			"::":                    "2001:db8:3::1",
			"0.0.0.0 ::":            "198.18.3.1 2001:db8:3::1",
			"0.0.0.0 2001:db8:3::1": "2001:db8:3::1 198.18.3.1",
			"198.18.3.1":            "198.18.3.1",
		} {
			var addrs []netip.Addr
			for _, a := range strings.Fields(listens) {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			names, err := Interfaces(addrs)
			if err != nil || fmt.Sprint(names) != "[eth]" {
				t.Errorf("%s: by %v, %v", listens, names, err)
			}
			reached, err := Reached(names, addrs)
			if err != nil {
				return err
			}
			var got []string
			for _, a := range reached {
				if !a.IsLinkLocalUnicast() {
					got = append(got, a.String())
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: reached at %v, want %s", listens, got, want)
			}
		}
		return nil
	})
}

package veth

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestHost(t *testing.T) {
	for _, c := range []struct {
		within  string
		n, host int
		want    string
	}{
		{"10.237.0.0/16", 0, 1, "10.237.0.1/30"},
		{"10.237.0.0/16", 64, 2, "10.237.1.2/30"},
		{"10.237.0.0/16", 1<<14 - 1, 3, "10.237.255.255/30"},
		{"198.18.0.0/15", 1<<14 + 1, 1, "198.19.0.5/30"},
	} {
		if got := Host(netip.MustParsePrefix(c.within), c.n, c.host).String(); got != c.want {
			t.Errorf("host %d of subnet %d of %s: got %s, want %s", c.host, c.n, c.within, got, c.want)
		}
	}
}

func TestPair(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and namespaces: run as root")
	}
	within := netip.MustParsePrefix("198.18.0.0/15")
	name := fmt.Sprintf("lnveth%d", os.Getpid())
	ns, err := NewNamespace(name)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	t.Cleanup(func() {
		for range 2 { // the second time nothing is there
			if err := errors.Join(Remove(name), RemoveNamespace(name)); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Stat(filepath.Join(Namespaces, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("namespace after its removal: %v", err)
		}
		if _, err := netlink.LinkByName(name); !errors.As(err, new(netlink.LinkNotFoundError)) {
			t.Errorf("interface after its removal: %v", err)
		}
	})
	n, err := FreeSubnet(within, uint32(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	near, far, err := New(
		Side{name, []netip.Prefix{Host(within, n, 1)}},
		Side{"far", []netip.Prefix{Host(within, n, 2), netip.MustParsePrefix("2001:db8::1/64")}}, ns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := FreeSubnet(within, uint32(n)); err != nil || again == n {
		t.Errorf("a subnet that is in use was found free: %d, %v", again, err)
	}
	knows(t, near, far)
	if err := InNamed(name, func() error { knows(t, far, near); return nil }); err != nil {
		t.Fatal(err)
	}
}

// knows checks that the kernel has a permanent neighbour entry for each of the other end's addresses.
func knows(t *testing.T, e, other End) {
	t.Helper()
	for _, a := range other.Addrs {
		family := netlink.FAMILY_V4
		if a.Addr().Is6() {
			family = netlink.FAMILY_V6
		}
		neighbours, err := netlink.NeighList(e.Index, family)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(neighbours, func(n netlink.Neigh) bool {
			return n.IP.String() == a.Addr().String() && n.HardwareAddr.String() == other.MAC.String() && n.State == netlink.NUD_PERMANENT
		}) {
			t.Errorf("%s does not know %s: %v", e.Name, a, neighbours)
		}
	}
}

func TestCPUMask(t *testing.T) {
	for bit, want := range map[int]string{0: "1", 31: "80000000", 32: "1,00000000", 70: "40,00000000,00000000"} {
		var set big.Int
		if got := cpuMask(set.SetBit(&set, bit, 1)); got != want {
			t.Errorf("CPU %d: %q, want %q", bit, got, want)
		}
	}
}

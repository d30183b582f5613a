package ethtool

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// isolate has the test in a network namespace of its own, which goes with its thread.
func isolate(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("makes interfaces and namespaces: run as root")
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
}

// A veth has the setting, by which the request is tested, but it does not strip. An ifb cannot.
func TestStripsVLAN(t *testing.T) {
	isolate(t)
	for _, l := range []netlink.Link{
		&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near"}, PeerName: "far"}, &netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "ifb"}},
	} {
		if err := netlink.LinkAdd(l); err != nil {
			t.Fatal(err)
		}
	}
	check := func(iface string, want bool) {
		t.Helper()
		if on, err := rxVLANOn(iface); err != nil || on != want {
			t.Errorf("rxvlan of %s is %t (%v), want %t", iface, on, err, want)
		}
		if strips, err := StripsVLAN(iface); err != nil || strips {
			t.Errorf("%s strips tags: %t (%v)", iface, strips, err)
		}
	}
	check("near", true)
	check("ifb", false)
	flags, err := value("near", unix.ETHTOOL_GFLAGS, 0)
	if err == nil {
		_, err = value("near", unix.ETHTOOL_SFLAGS, flags&^rxVLAN)
	}
	if err != nil {
		t.Fatal(err)
	}
	check("near", false)
	if _, err := StripsVLAN("nosuch"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("an interface that there is not: %v", err)
	}
}

func TestChecksumOffloadOff(t *testing.T) {
	isolate(t)
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "near"}, PeerName: "far"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := ChecksumOffloadOff("near"); err != nil {
			t.Fatal(err)
		}
		if on, err := value("near", unix.ETHTOOL_GTXCSUM, 0); err != nil || on != 0 {
			t.Errorf("it is %d (%v)", on, err)
		}
	}
	if err := ChecksumOffloadOff("nosuch"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("an interface that there is not: %v", err)
	}
}

// Package ethtool asks the drivers of interfaces, and sets them, as ethtool(8) does. Interfaces are those of the thread's network namespace.
package ethtool

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rxVLAN is ETH_FLAG_RXVLAN in linux/ethtool.h.
const rxVLAN = 1 << 8

// StripsVLAN says whether an interface takes VLAN tags out of packets before XDP programs see them. A veth is said not to: there it depends on the sender,
// and its own setting changes nothing.
func StripsVLAN(iface string) (bool, error) {
	fail := func(err error) (bool, error) {
		return false, fmt.Errorf("ask %s whether it strips VLAN tags: %w", iface, err)
	}
	driver, err := driverOf(iface)
	if err != nil {
		return fail(err)
	}
	on, err := rxVLANOn(iface)
	if err != nil {
		return fail(err)
	}
	return on && driver != "veth", nil
}

func rxVLANOn(iface string) (bool, error) {
	flags, err := value(iface, unix.ETHTOOL_GFLAGS, 0)
	return flags&rxVLAN != 0, err
}

// ChecksumOffloadOff makes the kernel finish the checksum of every packet before it leaves through the interface.
func ChecksumOffloadOff(iface string) error {
	if _, err := value(iface, unix.ETHTOOL_STXCSUM, 0); err != nil {
		return fmt.Errorf("turn transmit checksum offload of %s off: %w", iface, err)
	}
	return nil
}

func driverOf(iface string) (driver string, err error) {
	err = withSocket(func(fd int) error {
		info, err := unix.IoctlGetEthtoolDrvinfo(fd, iface)
		if err == nil {
			driver = unix.ByteSliceToString(info.Driver[:])
		}
		return err
	})
	return driver, err
}

// value makes a request that takes or gives one number (struct ethtool_value in linux/ethtool.h).
func value(iface string, cmd, data uint32) (uint32, error) {
	v := struct{ cmd, data uint32 }{cmd, data}
	req := struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&v)}
	copy(req.name[:unix.IFNAMSIZ-1], iface)
	err := withSocket(func(fd int) error {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
			return errno
		}
		return nil
	})
	return v.data, err
}

func withSocket(use func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return errors.Join(use(fd), unix.Close(fd))
}

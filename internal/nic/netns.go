package nic

import (
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// onThread runs f on a thread of its own. If f fails, the thread ends with it, as its namespace may be the wrong one.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := f()
		if err == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// newNamespace makes a named network namespace with its loopback up.
func newNamespace(name string) (ns netns.NsHandle, err error) {
	err = onThread(func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		if ns, err = netns.NewNamed(name); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		return errors.Join(err, netns.Set(home))
	})
	return ns, err
}

// inNamespace runs f on a thread that is in ns. Goroutines which f starts are not.
func inNamespace(ns netns.NsHandle, f func() error) error {
	return onThread(func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return errors.Join(f(), netns.Set(home))
	})
}

// inNamed does the same for a namespace by its name; "" is the one that we are in.
func inNamed(name string, f func() error) error {
	if name == "" {
		return f()
	}
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", name, err)
	}
	defer ns.Close()
	return inNamespace(ns, f)
}

// checksumOffloadOff makes the kernel finish the checksum of every packet before it leaves through the interface.
func checksumOffloadOff(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	value := struct{ cmd, data uint32 }{cmd: unix.ETHTOOL_STXCSUM} // struct ethtool_value
	req := struct {                                                // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(req.name[:unix.IFNAMSIZ-1], name)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return fmt.Errorf("turn transmit checksum offload of %s off: %w", name, errno)
	}
	return nil
}

func fnv32(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

package veth

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespaces is where ip-netns(8) and package netns keep named namespaces.
const Namespaces = "/run/netns"

// NewNamespace makes a named network namespace with its loopback up.
func NewNamespace(name string) (ns netns.NsHandle, err error) {
	err = onThread(func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		if err := shareNamespaces(); err != nil {
			return err
		}
		if ns, err = netns.NewNamed(name); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.LinkSetUp(lo)
		}
		return errors.Join(err, netns.Set(home))
	})
	if err != nil {
		return ns, fmt.Errorf("make network namespace %s: %w", name, err)
	}
	return ns, nil
}

// shareNamespaces makes the directory a shared mount of its own before anything is mounted in it, as ip-netns(8) does, and under
// ip-netns's lock. Otherwise, where /run is a private mount, the first "ip netns add" mounts the directory over itself, and what was mounted
// in it before cannot be unmounted any more. It leaves a directory with other mounts alone, as it would cover them.
func shareNamespaces() error {
	if err := os.MkdirAll(Namespaces, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(Namespaces)
	if err != nil {
		return err
	}
	defer dir.Close() // and with it the lock
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", Namespaces, err)
	}
	share := func() error { return unix.Mount("", Namespaces, "none", unix.MS_SHARED|unix.MS_REC, "") }
	if err := share(); !errors.Is(err, unix.EINVAL) { // EINVAL: no mount of its own, mount(2)
		return err
	}
	if _, err := dir.Readdirnames(1); !errors.Is(err, io.EOF) {
		return err
	}
	if err := unix.Mount(Namespaces, Namespaces, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", Namespaces, err)
	}
	return share()
}

// RemoveNamespace takes a named namespace away. A missing namespace is no error.
func RemoveNamespace(name string) error {
	err := netns.DeleteNamed(name)
	if errors.Is(err, unix.EINVAL) { // a file on which nothing was mounted yet when its owner died
		err = os.Remove(filepath.Join(Namespaces, name))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove network namespace %s: %w", name, err)
	}
	return nil
}

// In runs f on a thread in ns. Goroutines that f starts are not in ns. To run f in the namespace at hand takes no privileges.
func In(ns netns.NsHandle, f func() error) error {
	return onThread(func() error {
		home, err := netns.Get()
		if err != nil {
			return err
		}
		defer home.Close()
		if home.Equal(ns) {
			return f()
		}
		if err := netns.Set(ns); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return errors.Join(f(), netns.Set(home))
	})
}

// InNamed does the same for a namespace by its name; "" is the current one.
func InNamed(name string, f func() error) error {
	if name == "" {
		return f()
	}
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", name, err)
	}
	defer ns.Close()
	return In(ns, f)
}

// onThread runs f on a thread of its own. If f fails, the thread ends, as it may be in the wrong namespace.
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

package link

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// SetThreaded moves the receive work of both ends between soft interrupts of the sender, as is usual, and kernel threads,
// one per queue (Documentation/networking/napi.rst, "Threaded NAPI"), whose CPU time can be told apart from the
// sender's. Both ends must have an XDP program; without it a veth end has nothing to move.
func (p *Pair) SetThreaded(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	if err := writeThreaded("/sys", p.Host.Name, value); err != nil {
		return err
	}
	return inSysfs(p.ns, func(sys string) error { return writeThreaded(sys, p.Peer.Name, value) })
}

func writeThreaded(sys, iface, value string) error {
	if err := os.WriteFile(filepath.Join(sys, "class/net", iface, "threaded"), []byte(value), 0); err != nil {
		return fmt.Errorf("receive on %s in threads: %w: attach an XDP program first", iface, err)
	}
	return nil
}

// inSysfs runs f on a thread for which sysfs shows a network namespace. Which one sysfs shows is settled as it is mounted,
// so the thread gets a mount namespace too, and ends with it.
func inSysfs(ns netns.NsHandle, f func(sys string) error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- errors.Join(mountSysfs(ns), f("/sys"))
	}()
	return <-done
}

func mountSysfs(ns netns.NsHandle) error {
	if err := errors.Join(netns.Set(ns), unix.Unshare(unix.CLONE_NEWNS)); err != nil {
		return fmt.Errorf("enter namespaces: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	return nil
}

package nic

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrNoOffload says that an interface has no card that programs can be loaded into.
var ErrNoOffload = errors.New("no card to load programs into")

// offloading are the drivers that load XDP programs into a device: those in Linux whose ndo_bpf() takes XDP_SETUP_PROG_HW. netdevsim
// only simulates it.
var offloading = map[string]bool{"nfp": true, "netdevsim": true}

// driverOf asks an interface of this network namespace for its driver's name.
func driverOf(iface string) (_ string, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("ask %s for its driver: %w", iface, err)
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, iface)
	if err != nil {
		return "", fmt.Errorf("ask %s for its driver: %w", iface, err)
	}
	return unix.ByteSliceToString(info.Driver[:]), nil
}

// checkOffload returns an error if the driver does not load programs into a device.
func checkOffload(iface string) error {
	driver, err := driverOf(iface)
	if err != nil {
		return fmt.Errorf("%w: %w: use --mode native", ErrNoOffload, err)
	}
	if !offloading[driver] {
		return fmt.Errorf("%w: %s has the driver %s, and only nfp can: use --mode native", ErrNoOffload, iface, driver)
	}
	return nil
}

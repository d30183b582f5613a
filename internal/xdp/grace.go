package xdp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// graceCommand is MEMBARRIER_CMD_GLOBAL of membarrier(2).
const graceCommand = 1

// Grace returns when every NIC program that runs now has ended: membarrier waits until all processors have been through a quiescent state
// of the kernel's read-copy-update, which a program in a soft interrupt is not.
func Grace() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, graceCommand, 0, 0); errno != 0 {
		return fmt.Errorf("wait for the NIC programs that run: membarrier: %w: the kernel must not run with nohz_full", errno)
	}
	return nil
}

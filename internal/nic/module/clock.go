package module

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Now is the clock of bpf_ktime_get_coarse_ns(), in nanoseconds.
func Now() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &ts); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return uint64(ts.Nano()), nil
}

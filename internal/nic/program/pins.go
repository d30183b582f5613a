package program

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// makePins makes a NIC's directory of pins.
func makePins(dir string) error {
	return whileLocked(filepath.Dir(dir), func() error { return os.MkdirAll(dir, 0o700) })
}

// RemovePinDir removes the directory that all NICs' directories of pins are in, unless there is one. A NIC that comes up meanwhile makes it anew.
func RemovePinDir(dir string) error {
	return whileLocked(dir, func() error { return os.Remove(dir) })
}

// whileLocked runs f while no other process makes a directory in pinDir, or removes pinDir.
func whileLocked(pinDir string, f func() error) error {
	above, err := os.Open(filepath.Dir(pinDir))
	if err != nil {
		return err
	}
	defer above.Close() // and with it the lock
	if err := unix.Flock(int(above.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", above.Name(), err)
	}
	return f()
}

// Package space tells whether a directory's file system has room for what is about to be written.
package space

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"
)

// ErrFull says that a file system has too little free space.
var ErrFull = errors.New("not enough disk space")

// Require returns ErrFull, wrapped, where fewer than want bytes are free for dir. If dir does not exist, its nearest parent
// counts. The message names both sizes and ends with the remedy.
func Require(dir string, want uint64, remedy string) error {
	free, err := free(dir)
	if err != nil {
		return fmt.Errorf("look for free space in %s: %w", dir, err)
	}
	if free < want {
		return fmt.Errorf("%w: %s has %s free, and needs %s: %s", ErrFull, dir, humanize.IBytes(free), humanize.IBytes(want), remedy)
	}
	return nil
}

// Is tells whether an error is due to lack of space, found beforehand or while writing.
func Is(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

// free is the space that users other than root may fill.
func free(dir string) (uint64, error) {
	for {
		var fs unix.Statfs_t
		err := unix.Statfs(dir, &fs)
		parent := filepath.Dir(dir)
		switch {
		case errors.Is(err, os.ErrNotExist) && parent != dir:
			dir = parent
		case err != nil:
			return 0, os.NewSyscallError("statfs", err)
		case fs.Blocks == 0: // a file system without a size of its own, as a tmpfs with size=0
			return 1 << 62, nil
		default:
			return fs.Bavail * uint64(fs.Bsize), nil
		}
	}
}

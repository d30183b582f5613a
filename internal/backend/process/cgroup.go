package process

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// groupOf returns the cgroup for the processes of a run directory, outside the daemon's own so that they are not killed
// with it; "" where there is no cgroup v2 that we may write to.
func groupOf(runDir string) string {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(root, &fs) != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		group := filepath.Join(root, fmt.Sprintf("lambdanic-%x", sha256.Sum256([]byte(runDir)))[:len("lambdanic-")+12])
		if err := os.Mkdir(group, 0o755); err == nil || errors.Is(err, os.ErrExist) {
			return group
		}
	}
	return ""
}

// openGroup opens a cgroup, made if need be, to start a process in.
func openGroup(group string) (*os.File, error) {
	if group == "" {
		return nil, os.ErrNotExist
	}
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, err
	}
	return os.Open(group)
}

// removeGroup removes a cgroup whose processes are gone.
func removeGroup(group string) {
	if group != "" {
		_ = unix.Rmdir(group)
	}
}

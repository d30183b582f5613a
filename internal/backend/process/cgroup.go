package process

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

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
		if unix.Access(root, unix.W_OK) == nil {
			return filepath.Join(root, fmt.Sprintf("lambdanic-%.6x", sha256.Sum256([]byte(runDir))))
		}
	}
	return ""
}

// openGroup opens a cgroup, made if need be, to start a process in. Its parent goes with the last workload's
// group, maybe just now.
func openGroup(group string) (dir *os.File, err error) {
	if group == "" {
		return nil, os.ErrNotExist
	}
	for range 3 {
		if err = os.MkdirAll(group, 0o755); err == nil {
			return os.Open(group)
		}
	}
	return nil, err
}

// removeGroup removes a cgroup whose processes are gone, and its parent if that is empty now.
func removeGroup(group string) {
	if group != "" {
		removeEmpty(group)
		removeEmpty(filepath.Dir(group))
	}
}

// removeEmpty removes a cgroup without children. It may be busy a moment longer than the process or child that was in it is
// there to be seen.
func removeEmpty(group string) {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		children, err := filepath.Glob(filepath.Join(group, "*", "cgroup.procs"))
		if err != nil || len(children) > 0 || unix.Rmdir(group) != unix.EBUSY {
			return
		}
	}
}

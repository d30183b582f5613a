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
			limitTasks(group)
			return os.Open(group)
		}
	}
	return nil, err
}

// maxTasks is room for two processes with as many threads as they may have, one that serves and one that is to replace it.
const maxTasks = 256

// limitTasks bounds the processes and threads in a cgroup, where the controller pids is there for us; lambda-host's own limit
// holds in any case.
func limitTasks(group string) {
	_ = os.WriteFile(filepath.Join(filepath.Dir(group), "cgroup.subtree_control"), []byte("+pids"), 0)
	_ = os.WriteFile(filepath.Join(group, "pids.max"), fmt.Append(nil, maxTasks), 0)
}

// killGroup ends what is in a cgroup: also processes that a lambda started, in whatever session (cgroups(7), cgroup.kill).
func killGroup(group string) {
	if group != "" {
		_ = os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0) // there may be no such group
	}
}

// removeGroup ends what is left in a cgroup and removes it, and its parent if that is empty now. A group that was killed is not
// used again: kernel 6.18 kills what is then cloned into it, too.
func removeGroup(group string) {
	if group != "" {
		killGroup(group)
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

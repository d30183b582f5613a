package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroup is the path of a cgroup, outside of our own, so that what is in it is not killed with us; "" for none.
type Cgroup string

// NewCgroup names a cgroup in the root of the hierarchy: "" where there is no cgroup v2 that we may write to.
func NewCgroup(name string) Cgroup {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(root, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC && unix.Access(root, unix.W_OK) == nil {
			return Cgroup(filepath.Join(root, name))
		}
	}
	return ""
}

// Child names a cgroup in this one.
func (g Cgroup) Child(name string) Cgroup {
	if g == "" {
		return ""
	}
	return Cgroup(filepath.Join(string(g), name))
}

// LimitTasks bounds the processes and threads in the cgroup, where the controller pids is there for us.
func (g Cgroup) LimitTasks(most int) {
	if g != "" && g.make() == nil {
		_ = os.WriteFile(filepath.Join(filepath.Dir(string(g)), "cgroup.subtree_control"), []byte("+pids"), 0)
		_ = os.WriteFile(filepath.Join(string(g), "pids.max"), fmt.Append(nil, most), 0)
	}
}

// make makes the cgroup. Its parent goes with its last child, maybe just now.
func (g Cgroup) make() (err error) {
	for range 3 {
		if err = os.MkdirAll(string(g), 0o755); err == nil {
			return nil
		}
	}
	return err
}

// open opens the cgroup, made if need be, to start a process in.
func (g Cgroup) open() (*os.File, error) {
	if g == "" {
		return nil, os.ErrNotExist
	}
	if err := g.make(); err != nil {
		return nil, err
	}
	return os.Open(string(g))
}

// Kill ends what is in the cgroup: also processes that those in it started, in whatever session (cgroups(7), cgroup.kill). It
// is not to be used again: kernel 6.18 kills what is then cloned into it, too.
func (g Cgroup) Kill() {
	if g != "" {
		_ = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0) // there may be no such group
	}
}

// removePatience is how much longer a cgroup may be busy than the process or child that was in it is there to be seen.
const removePatience = 5 * time.Second

// Remove removes the cgroup, unless it has children.
func (g Cgroup) Remove() error {
	if g == "" {
		return nil
	}
	for deadline := time.Now().Add(removePatience); ; time.Sleep(time.Millisecond) {
		children, err := filepath.Glob(filepath.Join(string(g), "*", "cgroup.procs"))
		if err != nil || len(children) > 0 {
			return err
		}
		err = unix.Rmdir(string(g))
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", g, err)
		}
	}
}

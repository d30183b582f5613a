package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Cgroup is the path of a cgroup outside of our own, so that its processes are not killed with us; "" for none.
type Cgroup string

// NewCgroup names a cgroup in the root of the hierarchy; "" if there is no cgroup v2 that we may write to.
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

// LimitTasks bounds the processes and threads in the cgroup, if we have the controller pids.
func (g Cgroup) LimitTasks(most int) {
	if g != "" && g.Make() == nil {
		_ = os.WriteFile(filepath.Join(filepath.Dir(string(g)), "cgroup.subtree_control"), []byte("+pids"), 0)
		_ = os.WriteFile(filepath.Join(string(g), "pids.max"), fmt.Append(nil, most), 0)
	}
}

// Make makes the cgroup, if it is not there. Its parent is removed with the parent's last child, maybe just now: hence the tries.
func (g Cgroup) Make() (err error) {
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
	if err := g.Make(); err != nil {
		return nil, err
	}
	return os.Open(string(g))
}

// Kill ends all processes in the cgroup, also those that they started in other sessions (cgroups(7), cgroup.kill). The cgroup
// must not be used again: kernel 6.18 also kills what is cloned into it later.
func (g Cgroup) Kill() {
	if g != "" {
		_ = os.WriteFile(filepath.Join(string(g), "cgroup.kill"), []byte("1"), 0) // the cgroup may not exist
	}
}

// removePatience is how long a cgroup may stay busy after its last process or child has disappeared.
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

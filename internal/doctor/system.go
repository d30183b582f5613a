package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/internal/kernel"
)

var system = []probe{
	{"kernel", true, machine, "take an x86-64 machine"},
	{"privileges", true, privileges, asRoot},
	{"network namespaces", true, networkNamespace, "needs CONFIG_NET_NS, and no container that forbids it"},
	{"BPF file system", true, bpfFileSystem, "needs CONFIG_BPF_SYSCALL, and no container that forbids it; pinned programs live there"},
	{"cgroup v2", false, cgroup, "mount -t cgroup2 none /sys/fs/cgroup; without it, target process has no group of its own, and may send to anybody"},
}

func machine(context.Context) (string, error) {
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return "", err
	}
	return checkMachine(kernel.Release(), unix.ByteSliceToString(uts.Machine[:]))
}

// checkMachine refuses no kernel for its number: loading the NIC program shows whether an old kernel suffices.
func checkMachine(release, machine string) (string, error) {
	detail := fmt.Sprintf("Linux %s on %s", release, machine)
	if machine != "x86_64" {
		return "", fmt.Errorf("%s: no other machine than x86_64 is supported", detail)
	}
	if kernel.Older(release) {
		detail += "; the oldest that is tested is " + kernel.Oldest
	}
	return detail, nil
}

// capabilities are those that the daemon uses: network set-up, loading programs, and mounting their file system.
var capabilities = []struct {
	name string
	bit  uint
}{
	{"CAP_NET_ADMIN", unix.CAP_NET_ADMIN},
	{"CAP_SYS_ADMIN", unix.CAP_SYS_ADMIN},
	{"CAP_BPF", unix.CAP_BPF},
}

func privileges(context.Context) (string, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return "", fmt.Errorf("read own capabilities: %w", err)
	}
	var lacking []string
	for _, c := range capabilities {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			lacking = append(lacking, c.name)
		}
	}
	if lacking != nil {
		return "", fmt.Errorf("user %d lacks %s", os.Geteuid(), strings.Join(lacking, ", "))
	}
	return fmt.Sprintf("user %d with all that is needed", os.Geteuid()), nil
}

// networkNamespace makes a namespace on a thread of its own. Its goroutine never unlocks the thread, so that the thread dies with it.
func networkNamespace(context.Context) (string, error) {
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		made <- unix.Unshare(unix.CLONE_NEWNET)
	}()
	if err := <-made; err != nil {
		return "", fmt.Errorf("make a network namespace: %w", err)
	}
	return "can be made", nil
}

// bpfFileSystem makes a mount that is attached nowhere, whether or not a mount exists already.
func bpfFileSystem(context.Context) (string, error) {
	fs, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", fmt.Errorf("open a bpf file system: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return "", fmt.Errorf("create a bpf file system: %w", err)
	}
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("mount a bpf file system: %w", err)
	}
	defer unix.Close(mount)
	return "can be mounted", nil
}

func cgroup(context.Context) (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	root, ok := cgroupRoot(string(mounts))
	if !ok {
		return "", errors.New("no cgroup2 file system is mounted")
	}
	if err := unix.Access(root, unix.W_OK); err != nil {
		return "", fmt.Errorf("%s is mounted, but cannot be written to: %w", root, err)
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return "", err
	}
	if len(strings.Fields(string(controllers))) == 0 {
		return fmt.Sprintf("at %s, without controllers", root), nil
	}
	return fmt.Sprintf("at %s, with %s", root, strings.TrimSpace(string(controllers))), nil
}

// cgroupRoot finds the mount point in the text of proc_pid_mountinfo(5): the file system type follows a lone hyphen.
func cgroupRoot(mountinfo string) (string, bool) {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if ok && strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4], true
		}
	}
	return "", false
}

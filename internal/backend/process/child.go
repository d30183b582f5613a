package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// child is a running process, ours or one that we adopted: then it is not our child for the kernel, so it is followed by
// a pidfd, which names it without doubt also after its number was given to another.
type child struct {
	pid   int
	start uint64        // in clock ticks after boot: tells processes of one number apart
	pidfd *os.File      // nil once closed
	done  chan struct{} // closed when the process is gone, or we ceased to watch
	gone  bool          // valid after done: the process is gone
	reap  func() string
	how   string // it ended, after done, where it was our child for the kernel
}

func follow(pid int, reap func() string) (*child, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("follow process %d: %w", pid, err)
	}
	start, err := startTime(pid)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	c := &child{pid: pid, start: start, pidfd: os.NewFile(uintptr(fd), "pidfd"), done: make(chan struct{}), reap: reap}
	go c.watch()
	return c, nil
}

// watch waits until the pidfd becomes readable: the process is gone.
func (c *child) watch() {
	defer close(c.done)
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return
	}
	err = raw.Read(func(fd uintptr) bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, _ := unix.Poll(p, 0)
		return n > 0
	})
	if err != nil {
		return // closed
	}
	c.gone = true
	if c.reap != nil {
		c.how = c.reap()
	}
}

func (c *child) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// kill ends the process and waits until it is gone.
func (c *child) kill() error {
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	if err := errors.Join(cerr, err); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("kill process %d: %w", c.pid, err)
	}
	<-c.done
	return nil
}

// stop lets the process finish what it began, and ends it, if it must be by force. Its successor, of so many workers, gets what it
// does not begin any more; 0 for none.
func (c *child) stop(ctx context.Context, socket string, successor int) error {
	defer c.pidfd.Close()
	drain := "drain"
	if successor > 0 {
		drain = fmt.Sprintf("drain %d", successor)
	}
	deadline := time.Now().Add(drainTime)
	for c.alive() && ctx.Err() == nil && time.Now().Before(deadline) {
		left, err := control(ctx, socket, "%s", drain)
		if err != nil || left == "0 messages 0 calls" {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := control(ctx, socket, "quit"); err == nil {
		select {
		case <-c.done:
			return nil
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
	return c.kill()
}

// startTime reads field 22 of /proc/PID/stat (proc_pid_stat(5)). The second field may hold spaces.
func startTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("start time of process %d: %w", pid, err)
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("start time of process %d: %q is too short", pid, text)
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// spawn starts lambda-host in a session of its own, so that no terminal's or daemon's end reaches it.
func (b *Backend) spawn(args []string, group, logFile string) (*child, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(b.cfg.HostBinary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if dir, err := openGroup(group); err == nil {
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	if err := b.start(cmd); err != nil {
		return nil, fmt.Errorf("start lambda-host: %w", err)
	}
	c, err := follow(cmd.Process.Pid, func() string {
		cmd.Wait()
		return cmd.ProcessState.String()
	})
	if err != nil {
		cmd.Process.Kill()
		cmd.Wait()
		return nil, err
	}
	return c, nil
}

// try loads an object into a process that has nothing to lose: what the dynamic linker does not survive, or does not come back
// from, leaves the one that serves alone.
func (in *instance) try(ctx context.Context, r record) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, in.b.cfg.HostBinary, append([]string{"--check", filepath.Join(in.dir, r.Object)}, r.Args...)...)
	cmd.Env = []string{}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("the object does not load: %w: %s", errors.Join(err, ctx.Err()), bytes.TrimSpace(said))
	}
	return nil
}

// start runs a command in the configured network namespace: a child is born in that of the thread that makes it.
func (b *Backend) start(cmd *exec.Cmd) error {
	if b.cfg.Netns == "" {
		return cmd.Start()
	}
	target, err := netns.GetFromPath(b.cfg.Netns)
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", b.cfg.Netns, err)
	}
	defer target.Close()
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and with it its namespace
		if err := netns.Set(target); err != nil {
			result <- fmt.Errorf("enter network namespace %s: %w", b.cfg.Netns, err)
			return
		}
		result <- cmd.Start()
	}()
	return <-result
}

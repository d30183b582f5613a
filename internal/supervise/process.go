// Package supervise starts processes that outlive this one, finds them again, follows them and ends them.
package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a running process, ours or one that we adopted. An adopted one is not our child for the kernel, so each is followed by
// a pidfd, which still names it after its number was given to another process.
type Process struct {
	PID   int
	Start uint64 // in clock ticks after boot: tells processes with the same number apart

	pidfd *os.File
	ended chan struct{}
	gone  bool // valid once ended is closed
	reap  func() string
	how   string
}

// Options of Start.
type Options struct {
	Within func(start func() error) error // starts it, for example in another network namespace; nil: here
	Cgroup Cgroup
}

// Start starts cmd in a session of its own, so that it survives the terminal and the daemon, and in the cgroup, if any. The
// process gets no environment but cmd.Env.
func Start(cmd *exec.Cmd, o Options) (*Process, error) {
	if cmd.Env == nil {
		cmd.Env = []string{}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if dir, err := o.Cgroup.open(); err == nil {
		defer dir.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
	}
	within := o.Within
	if within == nil {
		within = func(start func() error) error { return start() }
	}
	if err := within(cmd.Start); err != nil {
		return nil, err
	}
	p, err := follow(cmd.Process.Pid, func() string {
		_ = cmd.Wait() // the state says how it ended
		return cmd.ProcessState.String()
	})
	if err != nil {
		err = errors.Join(err, cmd.Process.Kill())
		_ = cmd.Wait() // its error is the kill
		return nil, err
	}
	return p, nil
}

// Follow follows a process that another process of ours started. The caller has to check afterwards that it is the right one: another
// process may have got its number meanwhile.
func Follow(pid int) (*Process, error) { return follow(pid, nil) }

func follow(pid int, reap func() string) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("follow process %d: %w", pid, err)
	}
	start, err := startTime(pid)
	if err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	p := &Process{PID: pid, Start: start, pidfd: os.NewFile(uintptr(fd), "pidfd"), ended: make(chan struct{}), reap: reap}
	go p.watch()
	return p, nil
}

// watch waits until the pidfd becomes readable: the process is gone.
func (p *Process) watch() {
	defer close(p.ended)
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return
	}
	err = raw.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if n > 0 && p.reap == nil { // it may still be our child
			_ = unix.Waitid(unix.P_PIDFD, int(fd), nil, unix.WEXITED|unix.WNOHANG, nil)
		}
		return n > 0
	})
	if err != nil {
		return // Close
	}
	p.gone = true
	if p.reap != nil {
		p.how = p.reap()
	}
}

// Ended is closed when the process is gone, or after Close.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Gone says whether the process is gone and, if we started it, how it ended.
func (p *Process) Gone() (how string, gone bool) {
	select {
	case <-p.ended:
		return p.how, p.gone
	default:
		return "", false
	}
}

// Runs says whether the process runs the program in this file.
func (p *Process) Runs(binary os.FileInfo) bool {
	running, err := os.Stat(fmt.Sprintf("/proc/%d/exe", p.PID))
	return err == nil && os.SameFile(running, binary)
}

// Signal sends a signal to the process, if it is not gone.
func (p *Process) Signal(s unix.Signal) error {
	raw, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), s, nil, 0) })
	if err := errors.Join(cerr, err); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("send %v to process %d: %w", s, p.PID, err)
	}
	return nil
}

// killPatience is how long a process may take to end after SIGKILL.
const killPatience = 30 * time.Second

// Kill ends the process and waits until it is gone.
func (p *Process) Kill() error {
	if err := p.Signal(unix.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(killPatience):
		return fmt.Errorf("process %d does not end: see what it waits for in /proc/%d/stack", p.PID, p.PID)
	}
}

// Close stops following the process, which goes on.
func (p *Process) Close() error { return p.pidfd.Close() }

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

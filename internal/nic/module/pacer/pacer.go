// Package pacer keeps host/pacer.c running beside a NIC: it does what no packet comes for.
package pacer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// pause is how long a pacer that ended stays away before another is started; patience how long one may take to begin, and to end.
const (
	pause    = time.Second
	patience = 5 * time.Second
)

// Program is the program that pacer runs, and the name of its pin. While it is there, a pacer is kept.
const Program = "ln_expire"

// Log is where a NIC's pacer writes, and whose lock it holds.
func Log(s module.Site) string { return filepath.Join(s.RunDir, s.Instance+".pacer.log") }

// Module is one NIC's.
type Module struct {
	module.Base
	Binary string // host/pacer.c; without it nobody is told when an external call times out

	nic     module.NIC
	closing chan struct{}
	watch   sync.WaitGroup
}

var _ module.Module = (*Module)(nil)

// Open implements module.Module.
func (m *Module) Open(nic module.NIC, _ *ebpf.Collection) error {
	m.nic, m.closing = nic, make(chan struct{})
	return nil
}

// Start sees to it that a pacer runs, one that an earlier daemon left or a new one, and that it is replaced if it ends
// while the NIC is open. After Close it goes on without us.
func (m *Module) Start() {
	p, err := m.run()
	if err != nil {
		site := m.nic.Site()
		site.Log.Warn("no pacer: nobody is told when an external call times out", "instance", site.Instance, "because", err)
		return
	}
	m.watch.Go(func() { m.keep(p) })
}

func (m *Module) keep(p *process) {
	site := m.nic.Site()
	for {
		select {
		case <-m.closing:
			p.close()
			return
		case <-p.ended:
			p.close()
		}
		select {
		case <-m.closing:
			return
		case <-time.After(pause):
		}
		if _, err := os.Stat(site.Pin(Program)); err != nil {
			return // the NIC was taken down
		}
		site.Log.Warn("pacer ended: starting another", "instance", site.Instance)
		var err error
		if p, err = m.run(); err != nil {
			site.Log.Error("pacer does not start again", "instance", site.Instance, "because", err)
			return
		}
	}
}

// Close implements module.Module.
func (m *Module) Close() error {
	if m.closing != nil {
		close(m.closing)
		m.watch.Wait()
		m.closing = nil
	}
	return nil
}

// run finds the NIC's pacer, or starts it where there is none or one of another build.
func (m *Module) run() (*process, error) {
	p, err := find(m.nic.Site())
	if err != nil {
		return nil, err
	}
	if p != nil {
		binary, err := os.Stat(m.Binary)
		if err != nil || p.runs(binary) {
			return p, nil
		}
		if err := p.kill(); err != nil {
			return nil, err
		}
	}
	return m.start()
}

// start starts a pacer that neither a terminal's end nor the daemon's reaches: in a session and a cgroup of its own.
func (m *Module) start() (*process, error) {
	site := m.nic.Site()
	if m.Binary == "" {
		return nil, errors.New("no binary was given for it")
	}
	log, err := os.OpenFile(Log(site), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open pacer's log: %w", err)
	}
	defer log.Close()
	ready, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	cmd := exec.Command(m.Binary, site.Pins, strconv.Itoa(site.Index))
	cmd.Stdout, cmd.Stderr, cmd.Env = out, log, []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if group, err := openCgroup(Cgroup(site)); err == nil {
		defer group.Close()
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
	}
	err = veth.InNamed(site.Namespace, cmd.Start)
	out.Close()
	if err != nil {
		return nil, fmt.Errorf("start pacer: %w", err)
	}
	// It closes its output when it is at work, or by ending.
	_ = ready.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.Copy(io.Discard, ready)
	p, err := find(site)
	if p == nil {
		_ = cmd.Process.Kill()
		err = errors.Join(err, cmd.Wait())
		text, _ := os.ReadFile(Log(site))
		return nil, fmt.Errorf("start pacer: %w: %s", err, bytes.TrimSpace(text))
	}
	return p, cmd.Process.Release()
}

// Wrote has pacer look now after the packets that wait for the host. It looks by itself a little later, too.
func (m *Module) Wrote() error {
	p, err := find(m.nic.Site())
	if p == nil {
		return err
	}
	defer p.close()
	return p.signal(unix.SIGUSR1)
}

// Down ends an instance's pacer, if there is one. Its program goes first, so that no daemon starts another.
func (m *Module) Down(site module.Site) error {
	errs := []error{load.Unpin(site.Pin(Program))}
	p, err := find(site)
	if p != nil {
		err = p.kill()
	}
	if e := os.Remove(Log(site)); !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	errs = append(errs, err)
	if group := Cgroup(site); group != "" {
		errs = append(errs, removeCgroup(group))
	}
	return errors.Join(errs...)
}

// process is a running pacer, our child or not.
type process struct {
	pid   int
	fd    *os.File // pidfd: it names the process without doubt, also when its number is another's
	ended <-chan struct{}
}

// PID is the process ID of a NIC's pacer; 0 where none runs.
func PID(s module.Site) (int, error) {
	p, err := find(s)
	if p == nil {
		return 0, err
	}
	p.close()
	return p.pid, nil
}

// find asks who holds the lock on pacer's log; nil if nobody does.
func find(s module.Site) (*process, error) {
	log, err := os.OpenFile(Log(s), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("open pacer's log: %w", err)
	}
	defer log.Close()
	for {
		pid, err := lockHolder(log)
		if pid == 0 || err != nil {
			return nil, err
		}
		fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
		if err != nil && err != unix.ESRCH {
			return nil, fmt.Errorf("follow pacer, process %d: %w", pid, err)
		}
		if err != nil {
			continue
		}
		p := &process{pid: pid, fd: os.NewFile(uintptr(fd), "pidfd")}
		// If it still holds the lock, then what was opened is no later process of the same number.
		if again, err := lockHolder(log); again == pid && err == nil {
			p.ended = p.watch()
			return p, nil
		}
		p.close()
	}
}

func lockHolder(f *os.File) (int, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("ask for the lock on %s: %w", f.Name(), err)
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

// watch gives a channel that is closed when the process has ended or p was closed. A pidfd becomes readable at the end.
func (p *process) watch() <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		raw, err := p.fd.SyscallConn()
		if err != nil {
			return
		}
		_ = raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0
		})
		_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil) // if it was our child
	}()
	return ended
}

// runs says whether the process runs the program in this file.
func (p *process) runs(binary os.FileInfo) bool {
	running, err := os.Stat(fmt.Sprintf("/proc/%d/exe", p.pid))
	return err == nil && os.SameFile(running, binary)
}

// kill ends the process and waits for its end.
func (p *process) kill() error {
	defer p.close()
	if err := p.signal(unix.SIGKILL); err != nil {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("pacer, process %d, does not end: see what it waits for in /proc/%d/stack", p.pid, p.pid)
	}
}

// signal sends a signal to the process, if it has not ended.
func (p *process) signal(s unix.Signal) error {
	raw, err := p.fd.SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { err = unix.PidfdSendSignal(int(fd), s, nil, 0) }); e != nil {
		return e
	}
	if err != nil && err != unix.ESRCH {
		return fmt.Errorf("send %v to pacer, process %d: %w", s, p.pid, err)
	}
	return nil
}

// close ceases to follow the process.
func (p *process) close() { _ = p.fd.Close() }

// Cgroup is where pacer lives, outside of the daemon's group so that it is not killed with it; "" without cgroup v2.
func Cgroup(s module.Site) string {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var fs unix.Statfs_t
		if unix.Statfs(root, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
			return filepath.Join(root, "lambdanic-pacer-"+s.Instance)
		}
	}
	return ""
}

func openCgroup(group string) (*os.File, error) {
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, err
	}
	return os.Open(group)
}

// removeCgroup waits a little if need be, for a process leaves its group some time after its files.
func removeCgroup(group string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := os.Remove(group)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove pacer's cgroup: %w", err)
		}
	}
}

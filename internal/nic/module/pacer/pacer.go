// Package pacer keeps host/pacer.c running beside a NIC: pacer acts when no packet comes that would run the NIC program.
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
	"time"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/nic/load"
	"github.com/lambdanic/lambdanic/internal/nic/module"
	"github.com/lambdanic/lambdanic/internal/supervise"
	"github.com/lambdanic/lambdanic/internal/veth"
)

// pause is how long a pacer that ended stays away before another is started; patience how long one may take to begin.
const (
	pause    = time.Second
	patience = 5 * time.Second
)

// Program is the pin of the program that pacer runs. While the pin exists, a pacer is kept running.
const Program = "ln_expire"

// Log is the file that a NIC's pacer writes to and locks.
func Log(s module.Site) string { return filepath.Join(s.RunDir, s.Instance+".pacer.log") }

// Module is one NIC's.
type Module struct {
	module.Base
	Binary string // host/pacer.c; without it clients are not told when an external call times out

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

// Start makes sure that a pacer runs, an earlier daemon's or a new one, and replaces it if it ends while the NIC is open. After
// Close the pacer goes on without us.
func (m *Module) Start() {
	p, err := m.run()
	if err != nil {
		site := m.nic.Site()
		site.Log.Warn("no pacer: clients are not told when an external call times out", "instance", site.Instance, "because", err)
		return
	}
	m.watch.Go(func() { m.keep(p) })
}

func (m *Module) keep(p *supervise.Process) {
	site := m.nic.Site()
	for {
		select {
		case <-m.closing:
			_ = p.Close()
			return
		case <-p.Ended():
			_ = p.Close()
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

// run finds the NIC's pacer. It starts a new one if there is none, or one of another build.
func (m *Module) run() (*supervise.Process, error) {
	p, err := find(m.nic.Site())
	if err != nil {
		return nil, err
	}
	if p != nil {
		binary, err := os.Stat(m.Binary)
		if err != nil || p.Runs(binary) {
			return p, nil
		}
		if err := p.Kill(); err != nil {
			return nil, err
		}
	}
	return m.start()
}

// start starts a pacer in a session and a cgroup of its own, so that it survives the terminal and the daemon.
func (m *Module) start() (*supervise.Process, error) {
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
	cmd.Stdout, cmd.Stderr = out, log
	started, err := supervise.Start(cmd, supervise.Options{
		Within: func(start func() error) error { return veth.InNamed(site.Namespace, start) }, Cgroup: Cgroup(site),
	})
	out.Close()
	if err != nil {
		return nil, fmt.Errorf("start pacer: %w", err)
	}
	// It closes its output once it is at work, or when it ends.
	_ = ready.SetReadDeadline(time.Now().Add(patience))
	_, _ = io.Copy(io.Discard, ready)
	pid, err := lockHolder(log)
	if pid != started.PID {
		err = errors.Join(err, started.Kill())
		how, _ := started.Gone()
		text, _ := os.ReadFile(Log(site))
		return nil, errors.Join(fmt.Errorf("start pacer: it ended: %s: %s", how, bytes.TrimSpace(text)), err, started.Close())
	}
	return started, nil
}

// Wrote has pacer look at once after the packets that wait for the host. By itself it looks a little later.
func (m *Module) Wrote() error {
	p, err := find(m.nic.Site())
	if p == nil {
		return err
	}
	defer p.Close()
	return p.Signal(unix.SIGUSR1)
}

// Down ends an instance's pacer, if there is one. It removes pacer's program first, so that no daemon starts another.
func (m *Module) Down(site module.Site) error {
	errs := []error{load.Unpin(site.Pin(Program))}
	p, err := find(site)
	if p != nil {
		err = p.Kill()
	}
	if e := os.Remove(Log(site)); !errors.Is(e, os.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return errors.Join(append(errs, err, Cgroup(site).Remove())...)
}

// PID is the process ID of a NIC's pacer; 0 where none runs.
func PID(s module.Site) (int, error) {
	p, err := find(s)
	if p == nil {
		return 0, err
	}
	_ = p.Close()
	return p.PID, nil
}

// find returns the process that holds the lock on pacer's log; nil if nobody does.
func find(s module.Site) (*supervise.Process, error) {
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
		p, err := supervise.Follow(pid)
		if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		// If it still holds the lock, we did not open a later process with the same number.
		if again, err := lockHolder(log); again == pid && err == nil {
			return p, nil
		}
		_ = p.Close()
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

// Cgroup is pacer's, outside of the daemon's, so that it is not killed with the daemon.
func Cgroup(s module.Site) supervise.Cgroup {
	return supervise.NewCgroup("lambdanic-pacer-" + s.Instance)
}

// Package child starts processes that do not outlive this one.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd, which gets the signal when this process dies. ended is closed when it has ended, and cmd.ProcessState says how.
//
// It is started from a thread that stays until it has ended: the signal for a dead parent is sent when the thread dies that was the parent
// (prctl(2), PR_SET_PDEATHSIG).
func Start(cmd *exec.Cmd, signal syscall.Signal) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = signal
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // says how it ended
			close(done)
		}
	}()
	return done, <-started
}

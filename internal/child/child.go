// Package child starts processes that do not outlive this one.
package child

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd, which gets the signal when this process dies. ended is closed when cmd has ended; then cmd.ProcessState says how.
//
// Start keeps the thread that starts cmd until cmd has ended, as the kernel sends that signal when the parent thread dies
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
			_ = cmd.Wait() // sets cmd.ProcessState
			close(done)
		}
	}()
	return done, <-started
}

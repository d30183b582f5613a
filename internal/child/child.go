// Package child starts processes that do not outlive this one.
package child

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netns"
)

// Start starts cmd, which gets the signal when this process dies, in the network namespace of the calling thread. ended is closed when cmd has
// ended; then cmd.ProcessState says how.
//
// Start keeps the thread that starts cmd until cmd has ended, as the kernel sends that signal when the parent thread dies
// (prctl(2), PR_SET_PDEATHSIG).
func Start(cmd *exec.Cmd, signal syscall.Signal) (ended <-chan struct{}, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = signal
	namespace, err := netns.Get()
	if err != nil {
		return nil, fmt.Errorf("open the network namespace: %w", err)
	}
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		moved, err := enter(namespace)
		if !moved {
			defer runtime.UnlockOSThread() // a thread in another namespace ends with this goroutine
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			_ = cmd.Wait() // sets cmd.ProcessState
			close(done)
		}
	}()
	return done, errors.Join(<-started, namespace.Close())
}

// enter has this thread enter a network namespace, unless it is in it.
func enter(namespace netns.NsHandle) (moved bool, err error) {
	home, err := netns.Get()
	if err != nil {
		return false, fmt.Errorf("open the network namespace: %w", err)
	}
	defer home.Close()
	if home.Equal(namespace) {
		return false, nil
	}
	if err := netns.Set(namespace); err != nil {
		return false, fmt.Errorf("enter the network namespace: %w", err)
	}
	return true, nil
}

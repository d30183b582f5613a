// Package child starts processes that do not outlive this one.
package child

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"github.com/vishvananda/netns"

	"github.com/lambdanic/lambdanic/internal/veth"
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
	started, done := make(chan error, 2), make(chan struct{}) // a second error, of the way back, is nobody's
	go func() {
		started <- veth.In(namespace, func() error {
			if err := cmd.Start(); err != nil {
				return err
			}
			started <- nil
			_ = cmd.Wait() // sets cmd.ProcessState
			close(done)
			return nil
		})
	}()
	return done, errors.Join(<-started, namespace.Close())
}

package nic

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

// verifierError says what the verifier objects to, at which line of the author's, and what to change.
func verifierError(err error) error {
	if o := diagnose.Explain(err, nil); o != nil {
		return fmt.Errorf("%w: %w", ErrRefused, o)
	}
	return fmt.Errorf("load the program: %w", err)
}

// refused says in one line why the kernel does not take the NIC program, and which one does. All that the verifier says goes to
// who debugs.
func (c Config) refused(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOMEM) { // no other kernel helps
		return fmt.Errorf("load the NIC program: %w", err)
	}
	if o := diagnose.Explain(err, nil); o != nil {
		for _, line := range o.Log {
			c.Log.Debug("the verifier on the NIC program", "says", line)
		}
		err = errors.New(o.Message)
	}
	return kernel.Fails("does not take the NIC program", err)
}

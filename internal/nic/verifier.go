package nic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
	"github.com/lambdanic/lambdanic/internal/kernel"
)

const enotsupp = unix.Errno(524) // of the kernel's include/linux/errno.h; no C library has it

// unknown are what a kernel answers that lacks a kind of map, a helper or a flag.
var unknown = []error{ebpf.ErrNotSupported, unix.EINVAL, unix.E2BIG, unix.EOPNOTSUPP, enotsupp}

// refused says in one line why the kernel does not take the NIC program, and which one does. All that the verifier says goes to
// who debugs. Any other failure is not the kernel's: no other one helps.
func (c Config) refused(err error) error {
	o := diagnose.Explain(err, nil)
	if o == nil {
		if slices.ContainsFunc(unknown, func(e error) bool { return errors.Is(err, e) }) {
			return kernel.Fails("does not take the NIC program", err)
		}
		return fmt.Errorf("load the NIC program: %w", err)
	}
	for _, line := range o.Log {
		c.Log.Debug("the verifier on the NIC program", "says", line)
	}
	return kernel.Fails("does not take the NIC program", errors.New(o.Message))
}

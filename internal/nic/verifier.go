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

// unknown are the errors of a kernel that lacks a kind of map, a helper or a flag.
var unknown = []error{ebpf.ErrNotSupported, unix.EINVAL, unix.E2BIG, unix.EOPNOTSUPP, enotsupp}

// refused says in one line why the kernel does not take the NIC program, and which kernel does. The verifier's whole log goes to the
// debug log. Other failures are not the kernel's fault: another kernel would not help.
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

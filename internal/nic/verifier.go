package nic

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// verifierError says what the verifier objects to, at which line of the author's, and what to change.
func verifierError(err error) error {
	if o := diagnose.Explain(err, nil); o != nil {
		return fmt.Errorf("%w: %w", ErrRefused, o)
	}
	// An internal error of the verifier's (verifier_bug() in kernel/bpf/verifier.c) has no log.
	if errors.Is(err, unix.EFAULT) {
		return fmt.Errorf("%w: the kernel's verifier lost its way in it (%w): give each loop a constant bound, "+
			"as in i < m->payload_len && i < LN_RPC_MAX_PAYLOAD", ErrRefused, unix.EFAULT)
	}
	return fmt.Errorf("load the program: %w", err)
}

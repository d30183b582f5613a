package nic

import (
	"fmt"

	"github.com/lambdanic/lambdanic/compiler/diagnose"
)

// verifierError says what the verifier objects to, at which line of the author's, and what to change.
func verifierError(err error) error {
	if o := diagnose.Explain(err, nil); o != nil {
		return fmt.Errorf("%w: %w", ErrRefused, o)
	}
	return fmt.Errorf("load the program: %w", err)
}

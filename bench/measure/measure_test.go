package measure

import (
	"errors"
	"fmt"
	"testing"

	lambdanic "github.com/lambdanic/lambdanic/client/go"
)

// What a busy machine breaks off is begun again, twice; nothing else is.
func TestRepeat(t *testing.T) {
	late := fmt.Errorf("call: %w", lambdanic.ErrServiceTimeout)
	for name, tc := range map[string]struct {
		errs   []error
		rounds int
	}{
		"at once":        {[]error{nil}, 1},
		"late once":      {[]error{late, nil}, 2},
		"late twice":     {[]error{late, late, nil}, 3},
		"always late":    {[]error{late, late, late}, 3},
		"a wrong answer": {[]error{ErrWrong}, 1},
	} {
		rounds := 0
		err := repeat(name, t.Logf, func() error { rounds++; return tc.errs[rounds-1] })
		if last := tc.errs[len(tc.errs)-1]; rounds != tc.rounds || !errors.Is(err, last) {
			t.Errorf("%s: %v after %d rounds, not %v after %d", name, err, rounds, last, tc.rounds)
		}
	}
}

// Package verifier reads what the kernel's verifier says of a program.
package verifier

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
)

// StepsMost bounds the instructions that the verifier walks through one program. Its own limit is a million
// (BPF_COMPLEXITY_LIMIT_INSNS in include/linux/bpf.h); other kernels walk more of the same program, it needs room to grow, and each step takes time.
const StepsMost = 100_000

var stepsRE = regexp.MustCompile(`processed (\d+) insns`)

// CheckSteps fails if a program, which was loaded with the verifier's statistics (ebpf.LogLevelStats), took more than StepsMost steps.
func CheckSteps(t *testing.T, programs map[string]*ebpf.Program) {
	t.Helper()
	for name, p := range programs {
		steps, err := stepsOf(p.VerifierLog)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case steps > StepsMost:
			t.Errorf("%s: %d steps, more than %d", name, steps, StepsMost)
		default:
			t.Logf("%s: %d steps", name, steps)
		}
	}
}

func stepsOf(log string) (int, error) {
	found := stepsRE.FindStringSubmatch(log)
	if found == nil {
		return 0, fmt.Errorf("the verifier did not tell: %s", log)
	}
	return strconv.Atoi(found[1])
}

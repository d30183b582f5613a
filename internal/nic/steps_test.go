package nic

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/nic/program"
)

// stepsMost bounds the instructions that the verifier walks through one of the NIC's programs. Its own limit is a million
// (BPF_COMPLEXITY_LIMIT_INSNS in include/linux/bpf.h); other kernels walk more of the same program, and it needs room to grow.
const stepsMost = 100_000

// The verifier takes each of the NIC's programs, however it is configured, in no more steps than that.
func TestStepsOfTheVerifier(t *testing.T) {
	for unknown := range uint8(2) {
		for verify := range uint8(2) {
			t.Run(fmt.Sprintf("unknown_reply=%d verify_checksum=%d", unknown, verify), func(t *testing.T) {
				for _, h := range program.All(newModules(Config{}).halves()) {
					_, c := verified(t, h, unknown, verify)
					for name, p := range c.Programs {
						if steps := stepsOf(t, p.VerifierLog); steps > stepsMost {
							t.Errorf("%s: %d steps, more than %d", name, steps, stepsMost)
						} else {
							t.Logf("%s: %d steps", name, steps)
						}
					}
				}
			})
		}
	}
}

// verified loads a half of the NIC program on maps of its own, with the verifier's statistics.
func verified(t *testing.T, h *program.Half, unknown, verify uint8) (*ebpf.CollectionSpec, *ebpf.Collection) {
	t.Helper()
	spec, err := h.Spec()
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]any{"ln_unknown_reply": unknown, "ln_verify_checksum": verify}
	maps.Copy(constants, h.Constants)
	for name, value := range constants {
		if v := spec.Variables[name]; v != nil {
			if err := v.Set(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	coll, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(coll.Close)
	return spec, coll
}

var stepsRE = regexp.MustCompile(`processed (\d+) insns`)

func stepsOf(t *testing.T, log string) int {
	t.Helper()
	found := stepsRE.FindStringSubmatch(log)
	if found == nil {
		t.Fatalf("the verifier did not tell: %s", log)
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

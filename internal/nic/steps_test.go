package nic

import (
	"fmt"
	"maps"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/lambdanic/lambdanic/internal/nic/program"
	"github.com/lambdanic/lambdanic/test/verifier"
)

// The verifier takes each of the NIC's programs, however it is configured, in few steps.
func TestStepsOfTheVerifier(t *testing.T) {
	for unknown := range uint8(2) {
		for verify := range uint8(2) {
			t.Run(fmt.Sprintf("unknown_reply=%d verify_checksum=%d", unknown, verify), func(t *testing.T) {
				for _, h := range program.All(newModules(Config{}).halves()) {
					_, c := verified(t, h, unknown, verify)
					verifier.CheckSteps(t, c.Programs)
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

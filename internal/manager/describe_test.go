package manager

import (
	"strings"
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
	"github.com/lambdanic/lambdanic/internal/store"
)

// The causes of faults are told apart, on any target, with what the backend knows of the last one.
func TestDescribeExplainsFaults(t *testing.T) {
	f := &store.Function{Workload: 7, Revision: 1, Target: api.TargetNIC}
	s := backend.Status{Workload: 7, Revision: 1}
	running := func() backend.Running { return backend.Running{f.Target: {f.Workload: s}} }
	if d := describe(f, "", running(), nil); d.State != api.StateReady || d.Reason != "" {
		t.Errorf("without faults: %q, %q", d.State, d.Reason)
	}
	s.Fault = "bus error"
	if d := describe(f, "", running(), nil); !strings.Contains(d.Reason, s.Fault) {
		t.Errorf("%q does not say %q, though no cause was counted", d.Reason, s.Fault)
	}
	s.Stats.FaultsBy = api.FaultsBy{api.FaultTime: 2, api.FaultMemory: 1}
	s.Fault = "segmentation fault"
	d := describe(f, "", running(), nil)
	for _, want := range []string{"2 time", api.FaultTime.Meaning(), "1 memory", api.FaultMemory.Meaning(), s.Fault} {
		if !strings.Contains(d.Reason, want) {
			t.Errorf("%q does not say %q", d.Reason, want)
		}
	}
}

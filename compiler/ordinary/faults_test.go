package ordinary_test

import (
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/rig"
)

// The NIC and the process say why a run failed, to the client and in their counters, and the next run is unaffected.
func TestFaultsAreExplained(t *testing.T) {
	r := put(t, "faults")
	const far = 1 << 30
	causes := []api.Fault{
		api.FaultOwn, api.FaultTime, api.FaultBounds, api.FaultRecursion, api.FaultMemory, api.FaultBounds, // no longer a lack of memory
	}
	var want api.FaultsBy
	for _, cause := range causes {
		want[cause]++
		for place, ask := range map[string]func(uint32, []byte) (rig.Answer, error){"NIC": r.AskNIC, "process": r.AskProcess} {
			got, err := ask(0, words(uint32(cause), far))
			if err != nil || got.Type != api.TypeError || api.Code(got.Code) != api.CodeLambdaFault || got.Fault != cause {
				t.Errorf("%s: %v by %q, %v, want a fault by %q", place, got, got.Fault, err, cause)
			}
		}
		agree(t, r, words(uint32(cause)+100, 4))
	}
	onNIC, process, err := r.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for place, s := range map[string]api.Stats{"NIC": onNIC, "process": process} {
		if s.FaultsBy != want || s.Faults != uint64(len(causes)) {
			t.Errorf("%s counts %d faults: %s, want %s", place, s.Faults, s.FaultsBy, want)
		}
	}
}

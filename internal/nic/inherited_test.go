package nic

import (
	"testing"

	"github.com/lambdanic/lambdanic/test/inherited"
)

// pacer outlives our caller, and keeps none of its files open.
func TestPacerInheritsNoDescriptors(t *testing.T) {
	config := pacedConfig(t)
	path := inherited.Open(t)
	reopen(t, config)
	if pid := pacerPID(t, config); inherited.Has(t, pid, path) {
		t.Errorf("pacer %d has %s open", pid, path)
	}
}

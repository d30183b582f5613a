package nic

import (
	"testing"

	"github.com/lambdanic/lambdanic/internal/worker"
)

// One of two NICs has no room for a second revision: the lambda's state on the other is what it was, and so is what is in use.
func TestRefusedByOneOfTwo(t *testing.T) {
	const w = 7
	c := testConfig(t)
	c.Slots = 2 // of which slot 0 stays empty
	a, b := newTestNIC(t), open(t, c)
	g := worker.Group{a, b}
	if err := g.Deploy(t.Context(), counter(t, w, 1, 1)); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, a, w, 1, 1, 1, 1)
	wantError(t, g.Deploy(t.Context(), counter(t, w, 2, 2, fromVersion1)), "interface 2 of 2: deploy counter revision 2 on the NIC: slots")
	wantCounts(t, a, w, 1, 2, 2, 2)
	wantCounts(t, b, w, 1, 1, 1, 1)
	if usage(a) != usage(b) {
		t.Errorf("%+v in use on the one, %+v on the other", usage(a), usage(b))
	}
	if err := a.Deploy(t.Context(), counter(t, w, 2, 2, fromVersion1)); err != nil {
		t.Error(err)
	}
	wantCounts(t, a, w, 2, 3, 30, 1)
}

package nic

import (
	"testing"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// One of two NICs has no room for a second revision: on the other NIC, the lambda's state and what is in use stay the same.
func TestRefusedByOneOfTwo(t *testing.T) {
	const w = 7
	c := testConfig(t)
	c.Slots = 2 // slot 0 stays empty
	a, b := newTestNIC(t), open(t, c)
	g := backend.Group{a, b}
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

// A daemon dies after the first of two NICs swapped. The next daemon goes on with the revision that clients have seen: it deploys that to
// both, also where it serves already, and no state is lost.
func TestSwappedOnOneOfTwo(t *testing.T) {
	const w = 7
	a, b := newTestNIC(t), newTestNIC(t)
	g := backend.Group{a, b}
	if err := g.Deploy(t.Context(), counter(t, w, 1, 1)); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, a, w, 1, 1, 1, 1)
	wantCounts(t, b, w, 1, 1, 1, 1)
	second := counter(t, w, 2, 2, fromVersion1)
	if err := a.Deploy(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, a, w, 2, 2, 20, 1)
	status, err := g.Status(t.Context())
	if err != nil || len(status) != 1 || status[0].Revision != 0 || status[0].Newest != 2 {
		t.Fatalf("status %+v, %v", status, err)
	}
	if err := g.Deploy(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, a, w, 2, 3, 30, 2)
	wantCounts(t, b, w, 2, 2, 20, 1)
}

package process

import (
	"testing"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/test/inherited"
	"github.com/lambdanic/lambdanic/test/shortdir"
)

// A lambda may read what its process has open, so the process inherits nothing from our caller.
func TestInheritsNoDescriptors(t *testing.T) {
	native := fixture(t, "packet")
	for _, host := range []string{plainHost, checkedHost} {
		b := newBackend(t, host, shortdir.New(t))
		path := inherited.Open(t)
		if err := b.Deploy(t.Context(), deployment(1, 1, api.ModePacket, native)); err != nil {
			t.Fatal(err)
		}
		if inherited.Has(t, pidOf(t, b, 1), path) {
			t.Errorf("%s has %s open", host, path)
		}
	}
}

// Package nothing is a target that takes lambdas and runs none: an example of all that a target needs.
package nothing

import (
	"context"
	"net/netip"
	"sync"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/backend"
)

// Name is what specs call it.
var Name = api.NewTarget("nothing")

// Target is the target and its backend.
type Target struct {
	mu        sync.Mutex
	revisions map[uint32]uint32 // by workload
}

var (
	_ backend.Target  = (*Target)(nil)
	_ backend.Backend = (*Target)(nil)
)

// New makes the target. It keeps nothing for which it would need a site.
func New(backend.Site) *Target { return &Target{revisions: make(map[uint32]uint32)} }

// Name is nothing.
func (*Target) Name() api.Target { return Name }

// Up has nothing to bring up.
func (t *Target) Up(context.Context) (backend.Place, error) {
	return backend.Place{Target: Name, Backend: t, Detail: "runs nothing"}, nil
}

// Close has nothing to let go of.
func (*Target) Close() error { return nil }

// Down has nothing to end.
func (*Target) Down(context.Context) error { return nil }

// Deploy takes note of a revision.
func (t *Target) Deploy(_ context.Context, d backend.Deployment) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.revisions[d.Workload] = d.Revision
	return nil
}

// Remove forgets it.
func (t *Target) Remove(_ context.Context, workload uint32) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.revisions, workload)
	return nil
}

// Status lists the notes.
func (t *Target) Status(context.Context) (list []backend.Status, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for workload, revision := range t.revisions {
		list = append(list, backend.Status{Workload: workload, Revision: revision, Newest: revision})
	}
	return list, nil
}

// Endpoint knows none: requests are not answered.
func (*Target) Endpoint(uint32) (netip.AddrPort, bool) { return netip.AddrPort{}, false }

package nic

import (
	"errors"
	"testing"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/nic/module/rdma"
)

// While the kernel verifies a revision, and until it serves, users of the serving revisions do not wait.
func TestNobodyWaitsForADeploy(t *testing.T) {
	n := newTestNIC(t)
	d := reverser(t, "4KiB", 1)
	deploy(t, n, d)
	d.Revision++
	p, err := n.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]func() error{
		"endpoint": func() error {
			if _, ok := n.Endpoint(d.Workload); !ok {
				return errors.New("it is not there")
			}
			return nil
		},
		"status":   func() error { _, err := n.Status(t.Context()); return err },
		"counters": func() error { _, err := n.Counters(); return err },
		"objects":  func() error { _, err := n.Objects(t.Context(), d.Workload); return err },
		"region": func() error {
			_, err := ModuleOf[*rdma.Module](n).AddRegion(t.Context(), d.Workload, api.RegionRequest{})
			return err
		},
		"regions":     func() error { _, err := ModuleOf[*rdma.Module](n).Regions(t.Context(), d.Workload); return err },
		"queue pairs": func() error { _, err := ModuleOf[*rdma.Module](n).QueuePairs(t.Context(), d.Workload); return err },
	}
	for what, use := range uses {
		done := make(chan error, 1)
		go func() { done <- use() }()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(longest):
			t.Errorf("%s waits for the deploy", what)
		}
	}
	// Another change does wait.
	removed := make(chan error, 1)
	go func() { removed <- n.Remove(t.Context(), d.Workload) }()
	p.Swap()
	if err := <-removed; err != nil {
		t.Error(err)
	}
	if _, ok := n.Endpoint(d.Workload); ok {
		t.Error("it is still there after its removal")
	}
}

package daemon

import (
	"context"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/journal"
)

// faultsEvery is how long faults are gathered for one line of the log: a lambda may fail a million times a second.
const faultsEvery = time.Second

// reportFaults writes to the log which functions failed, how often and why, until ctx ends. The data path only counts.
func (d *Daemon) reportFaults(ctx context.Context) {
	var known map[revision]api.FaultsBy
	for {
		known = d.newFaults(ctx, known)
		select {
		case <-ctx.Done():
			return
		case <-time.After(faultsEvery):
		}
	}
}

// A revision has its own counters.
type revision struct {
	workload, number uint32
	target           api.Target
}

// newFaults logs faults that known does not have, and returns the new counts. Faults from before the daemon came up, with known
// still nil, were logged by an earlier daemon.
func (d *Daemon) newFaults(ctx context.Context, known map[revision]api.FaultsBy) map[revision]api.FaultsBy {
	stats, err := d.manager.Stats(ctx)
	if err != nil {
		return known // `lambdanic stats` reports the error
	}
	counted := make(map[revision]api.FaultsBy, len(stats))
	for _, s := range stats {
		r := revision{s.Workload, s.Revision, s.Target}
		counted[r] = s.FaultsBy
		if fresh := s.FaultsBy.Since(known[r]); known != nil && fresh != (api.FaultsBy{}) {
			d.cfg.Log.Warn("failed", journal.Function, s.Namespace+"/"+s.Name, "revision", s.Revision, "target", s.Target, "faults", fresh.Explain())
		}
	}
	return counted
}

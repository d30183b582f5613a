package daemon

import (
	"context"
	"time"

	"github.com/lambdanic/lambdanic/api"
	"github.com/lambdanic/lambdanic/internal/journal"
)

// faultsEvery is how long faults are gathered for one line of the log, as a lambda may fail a million times a second, and for its breaker
// (api.BreakerSpec).
const faultsEvery = time.Second

// reportFaults writes to the log which functions failed, how often and why, and takes out those that failed too often, until ctx ends. The
// data path only counts.
func (d *Daemon) reportFaults(ctx context.Context) {
	var known map[revision]api.Stats
	for {
		var fresh []api.FunctionStats
		fresh, known = d.newFaults(ctx, known)
		for _, s := range fresh {
			d.cfg.Log.Warn("failed", journal.Function, s.Namespace+"/"+s.Name, "revision", s.Revision, "target", s.Target, "faults", s.FaultsBy.Explain())
			if err := d.manager.TakeOut(ctx, s); err != nil {
				d.cfg.Log.Error("a function that fails stays where it is", journal.Function, s.Namespace+"/"+s.Name, "because", err)
			}
		}
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

// newFaults returns the functions that failed since the counters were as in known, with what they counted since, and the counters. Faults
// from before the daemon came up, with known still nil, were seen by an earlier daemon.
func (d *Daemon) newFaults(ctx context.Context, known map[revision]api.Stats) (fresh []api.FunctionStats, counted map[revision]api.Stats) {
	stats, err := d.manager.Stats(ctx)
	if err != nil {
		return nil, known // `lambdanic stats` reports the error
	}
	counted = make(map[revision]api.Stats, len(stats))
	for _, s := range stats {
		r := revision{s.Workload, s.Revision, s.Target}
		counted[r] = s.Stats
		before := known[r]
		s.FaultsBy = s.FaultsBy.Since(before.FaultsBy)
		if known == nil || s.FaultsBy == (api.FaultsBy{}) {
			continue
		}
		s.Requests -= min(s.Requests, before.Requests)
		s.Faults -= min(s.Faults, before.Faults)
		fresh = append(fresh, s)
	}
	return fresh, counted
}

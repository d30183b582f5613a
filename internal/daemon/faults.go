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
	var known map[place]api.FunctionStats
	for looked := time.Now(); ; {
		fresh, counted := d.newFaults(ctx, known)
		within := time.Since(looked)
		looked, known = time.Now(), counted
		for _, s := range fresh {
			d.cfg.Log.Warn("failed", journal.Function, s.Namespace+"/"+s.Name, "revision", s.Revision, "target", s.Target, "faults", s.FaultsBy.Explain())
			if err := d.manager.TakeOut(ctx, s, within); err != nil {
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

// A place is where a lambda is counted.
type place struct {
	workload uint32
	target   api.Target
}

// newFaults returns the functions that failed since the counters were as in known, with what they counted since, and the counters. Those of
// a function that cannot be asked at present stay. Faults from before the daemon came up, with known still nil, were seen by an earlier daemon.
func (d *Daemon) newFaults(ctx context.Context, known map[place]api.FunctionStats) (fresh []api.FunctionStats, counted map[place]api.FunctionStats) {
	stats, err := d.manager.Stats(ctx)
	if err != nil {
		return nil, known // `lambdanic stats` reports the error
	}
	counted = make(map[place]api.FunctionStats, len(stats))
	for at, s := range known {
		if f, ok := d.manager.Route(s.Namespace, s.Name); ok && f.Workload == at.workload {
			counted[at] = s
		}
	}
	for _, s := range stats {
		at := place{s.Workload, s.Target}
		before := counted[at]
		if before.Revision != s.Revision {
			before = api.FunctionStats{}
		}
		counted[at] = s
		s.FaultsBy = s.FaultsBy.Since(before.FaultsBy)
		if known == nil || s.FaultsBy == (api.FaultsBy{}) {
			continue
		}
		s.Faults -= min(s.Faults, before.Faults)
		if s.Requests >= before.Requests { // else they began anew, as with a process's death
			s.Requests -= before.Requests
		}
		s.Requests = max(s.Requests, 1)
		fresh = append(fresh, s)
	}
	return fresh, counted
}

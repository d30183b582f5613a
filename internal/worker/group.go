package worker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/lambdanic/lambdanic/internal/backend"
)

// Member is a backend that may be part of a Group.
type Member interface {
	Backend
	// Prepare does all of Deploy that may be refused.
	Prepare(ctx context.Context, d backend.Deployment) (backend.Prepared, error)
	// PrepareFused does all of DeployFused (see Fuser) that may be refused.
	PrepareFused(ctx context.Context, f backend.Fused) (backend.Prepared, error)
}

// Group makes several backends one: the NIC programs on several interfaces of a node run the same lambdas.
type Group []Member

// Simplify returns the only member of a group of one.
func (g Group) Simplify() Backend {
	if len(g) == 1 {
		return g[0]
	}
	return g
}

// Deploy deploys to all or, if one refuses, to none: on each of them the revision before it serves on, with its state.
func (g Group) Deploy(ctx context.Context, d backend.Deployment) error {
	return g.deploy(func(m Member) (backend.Prepared, error) { return m.Prepare(ctx, d) })
}

func (g Group) deploy(prepare func(Member) (backend.Prepared, error)) error {
	ready, err := g.prepare(prepare)
	for _, p := range ready {
		if err == nil {
			err = p.Migrate()
		}
	}
	for _, p := range ready {
		if err != nil {
			err = errors.Join(err, p.Drop())
		} else {
			p.Swap()
		}
	}
	return err
}

// prepare gives also what is ready where one refuses.
func (g Group) prepare(prepare func(Member) (backend.Prepared, error)) (ready []backend.Prepared, err error) {
	for i, m := range g {
		p, err := prepare(m)
		if err != nil {
			return ready, fmt.Errorf("interface %d of %d: %w", i+1, len(g), err)
		}
		ready = append(ready, p)
	}
	return ready, nil
}

// Remove removes from all.
func (g Group) Remove(ctx context.Context, workload uint32) error {
	var errs []error
	for _, b := range g {
		errs = append(errs, b.Remove(ctx, workload))
	}
	return errors.Join(errs...)
}

// Status lists what runs on every member at the same revision, with the sum of the counters. What runs on some members only
// is listed with revision 0, which no deployment has, and the newest.
func (g Group) Status(ctx context.Context) ([]backend.Status, error) {
	sums := map[uint32]*backend.Status{}
	members := map[uint32]int{}
	for _, b := range g {
		list, err := b.Status(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			members[s.Workload]++
			s.Newest = s.Revision
			sum, ok := sums[s.Workload]
			if !ok {
				sums[s.Workload] = &s
				continue
			}
			if sum.Revision != s.Revision {
				sum.Revision = 0
			}
			sum.Newest = max(sum.Newest, s.Revision)
			add(&sum.Stats, &s.Stats)
		}
	}
	all := make([]backend.Status, 0, len(sums))
	for id, s := range sums {
		if members[id] < len(g) {
			s.Revision = 0
		}
		all = append(all, *s)
	}
	return all, nil
}

// Endpoint is the first member's.
func (g Group) Endpoint(workload uint32) (netip.AddrPort, bool) {
	return g[0].Endpoint(workload)
}

func add(sum, s *backend.Stats) {
	sum.Requests += s.Requests
	sum.Replies += s.Replies
	sum.Errors += s.Errors
	sum.Drops += s.Drops
	sum.Calls += s.Calls
	sum.Faults += s.Faults
	sum.Late += s.Late
	sum.BytesIn += s.BytesIn
	sum.BytesOut += s.BytesOut
	sum.Samples += s.Samples
	sum.SampledNS += s.SampledNS
	for i := range s.FaultsBy {
		sum.FaultsBy[i] += s.FaultsBy[i]
	}
	for i := range s.Histogram {
		sum.Histogram[i] += s.Histogram[i]
	}
}

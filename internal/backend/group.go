package backend

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/lambdanic/lambdanic/api"
)

// Member is a backend that may be part of a Group.
type Member interface {
	Backend
	// Prepare does everything in Deploy that may be refused.
	Prepare(ctx context.Context, d Deployment) (Prepared, error)
	// PrepareFused does everything in DeployFused (see Fuser) that may be refused.
	PrepareFused(ctx context.Context, f Fused) (Prepared, error)
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

// Deploy deploys to all members or, if one refuses, to none: then on each the revision before serves on, with its state.
func (g Group) Deploy(ctx context.Context, d Deployment) error {
	return g.deploy(func(m Member) (Prepared, error) { return m.Prepare(ctx, d) })
}

func (g Group) deploy(prepare func(Member) (Prepared, error)) error {
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

// prepare returns what is ready even if a member refuses.
func (g Group) prepare(prepare func(Member) (Prepared, error)) (ready []Prepared, err error) {
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

// Status lists the workloads with the sum of their members' counters. Where members differ in the revision, or some do not run the
// workload, the revision is 0, which no deployment has.
func (g Group) Status(ctx context.Context) ([]Status, error) {
	sums := map[uint32]*Status{}
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
	all := make([]Status, 0, len(sums))
	for id, s := range sums {
		if members[id] < len(g) {
			s.Revision = 0
		}
		all = append(all, *s)
	}
	return all, nil
}

// Accounts are the sums of the members'.
func (g Group) Accounts(ctx context.Context) (map[uint32]Stats, error) {
	var list []Accounting
	for _, m := range g {
		if a, ok := m.(Accounting); ok {
			list = append(list, a)
		}
	}
	return SumAccounts(ctx, list)
}

// Limit sets the limits of those members that have such.
func (g Group) Limit(ctx context.Context, limits Limits) error {
	var errs []error
	for _, m := range g {
		if l, ok := m.(Limiting); ok {
			errs = append(errs, l.Limit(ctx, limits))
		}
	}
	return errors.Join(errs...)
}

// SumAccounts reads the accounts of several backends. They are nil where all are.
func SumAccounts(ctx context.Context, list []Accounting) (sums map[uint32]Stats, err error) {
	for _, a := range list {
		accounts, err := a.Accounts(ctx)
		if err != nil {
			return nil, err
		}
		if accounts != nil && sums == nil {
			sums = make(map[uint32]Stats, len(accounts))
		}
		for number, s := range accounts {
			sum := sums[number]
			add(&sum, &s)
			sums[number] = sum
		}
	}
	return sums, nil
}

// Endpoint is the first member's.
func (g Group) Endpoint(workload uint32) (netip.AddrPort, bool) {
	return g[0].Endpoint(workload)
}

func add(sum, s *Stats) {
	sum.Requests += s.Requests
	sum.Replies += s.Replies
	sum.Errors += s.Errors
	sum.Drops += s.Drops
	sum.Calls += s.Calls
	sum.Faults += s.Faults
	sum.Late += s.Late
	sum.OverQuota += s.OverQuota
	sum.OverShare += s.OverShare
	sum.OverBandwidth += s.OverBandwidth
	sum.BadTags += s.BadTags
	sum.Replayed += s.Replayed
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

// DeployFused deploys to all or, if one refuses, to none.
func (g Group) DeployFused(ctx context.Context, f Fused) error {
	return g.deploy(func(m Member) (Prepared, error) { return m.PrepareFused(ctx, f) })
}

// Ask asks the first member.
func (g Group) Ask(q api.Header, body, reply []byte) (h api.Header, payload []byte, ok bool, err error) {
	a, can := g[0].(Asker)
	if !can {
		return h, nil, false, nil
	}
	return a.Ask(q, body, reply)
}

// members calls f with each member of a group: each has its own objects.
func (g Group) members(f func(Objects) error) error {
	var errs []error
	for i, m := range g {
		o, ok := m.(Objects)
		if !ok {
			return fmt.Errorf("%w: interface %d of %d keeps objects to itself", ErrNoObject, i+1, len(g))
		}
		errs = append(errs, f(o))
	}
	return errors.Join(errs...)
}

// Objects are the first member's: all have the same.
func (g Group) Objects(ctx context.Context, workload uint32) (list []api.Object, err error) {
	err = g[:1].members(func(o Objects) error {
		list, err = o.Objects(ctx, workload)
		return err
	})
	return list, err
}

// ReadObject reads the first member's.
func (g Group) ReadObject(ctx context.Context, workload uint32, name string) (value []byte, err error) {
	err = g[:1].members(func(o Objects) error {
		value, err = o.ReadObject(ctx, workload, name)
		return err
	})
	return value, err
}

// WriteObject writes on all members.
func (g Group) WriteObject(ctx context.Context, workload uint32, name string, value []byte) error {
	return g.members(func(o Objects) error { return o.WriteObject(ctx, workload, name, value) })
}
